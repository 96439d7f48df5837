"""MPADEncoder: texts → vectors, by the pretrained network alone."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin

from mpad.data.inputs import as_texts
from mpad.encoder.encoder import AUTO, Encoder, load_encoder, normalize
from mpad.errors import InputError


class MPADEncoder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Turn texts into vectors whose cosine says how close texts are in meaning.

    A scikit-learn transformer that needs no training, and an encoder with the methods of a sentence-transformers model,
    so that tools for topics, keywords and search accept it. It runs on a CPU, with NumPy and C.

    Parameters
    ----------
    encoder : str or path, default="auto"
        "auto": the English encoder that ships with mpad. The folder of another one, from `mpad pretrain`.

    Examples
    --------
    >>> encoder = MPADEncoder()                                                     # doctest: +SKIP
    >>> vectors = encoder.encode(["a cat", "a kitten", "a tax form"])               # doctest: +SKIP
    >>> encoder.similarity(vectors[0], vectors)                                     # doctest: +SKIP

    """

    def __init__(self, encoder: str | Path = AUTO) -> None:
        self.encoder = encoder

    def fit(self, X: Iterable[str] | None = None, y: Any = None) -> Self:
        """Load the encoder; X and y are not used.

        Returns
        -------
        self

        """
        self._loaded()
        return self

    def transform(self, X: Iterable[str]) -> NDArray[np.float32]:
        """Return the vectors of texts: (texts, width), each of length one.

        Parameters
        ----------
        X : iterable of str
            The texts.

        Returns
        -------
        ndarray of shape (n_texts, width)

        """
        return self._loaded().encode(as_texts(X))

    def encode(
        self,
        sentences: str | Iterable[str],
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
        convert_to_numpy: bool = True,
        normalize_embeddings: bool = True,
        **_: Any,
    ) -> NDArray[np.float32]:
        """Return the vectors of texts, as sentence-transformers does.

        Parameters
        ----------
        sentences : str or iterable of str
            One text, or several.
        batch_size, show_progress_bar, convert_to_numpy, normalize_embeddings
            Accepted for compatibility and not used: all texts are one batch, and vectors are arrays of length one.

        Returns
        -------
        ndarray of shape (width,) or (n_texts, width)
            A single text has a single vector.

        """
        if isinstance(sentences, str):
            return np.asarray(self.transform([sentences])[0])
        return self.transform(sentences)

    def similarity(self, first: NDArray[np.floating], second: NDArray[np.floating]) -> NDArray[np.float32]:
        """Return the cosine of each of the first vectors with each of the second.

        Parameters
        ----------
        first, second : ndarray of shape (n, width) or (width,)
            Vectors.

        Returns
        -------
        ndarray of shape (n_first, n_second)

        """
        try:
            rows = [normalize(np.atleast_2d(np.asarray(part, np.float32))) for part in (first, second)]
        except (TypeError, ValueError):
            raise InputError("similarity compares vectors: encode the texts first") from None
        return np.asarray(rows[0] @ rows[1].T)

    def nearest(self, query: str, texts: Sequence[str], top: int = 5) -> list[tuple[int, float]]:
        """Return the texts that are closest to a query.

        Parameters
        ----------
        query : str
            A text.
        texts : sequence of str
            The texts to search.
        top : int, default=5
            Number of texts to return.

        Returns
        -------
        list of (int, float)
            Position and cosine of each, the closest first.

        """
        if top < 1:
            raise InputError(f"top must be at least 1, not {top}")
        cosines = self.similarity(self.encode(query), self.transform(texts))[0] if len(texts) else np.zeros(0)
        order = np.argsort(-cosines, kind="stable")[:top]
        return [(int(k), float(cosines[k])) for k in order]

    def get_sentence_embedding_dimension(self) -> int:
        """Return the length of a vector.

        Returns
        -------
        int

        """
        return self._loaded().width

    def _loaded(self) -> Encoder:
        if not isinstance(self.encoder, (str, Path)):
            raise InputError(f"encoder must be 'auto' or a folder, not {self.encoder!r}")
        return load_encoder(self.encoder)

    @property
    def _n_features_out(self) -> int:
        return self._loaded().width

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.requires_fit = False
        return tags
