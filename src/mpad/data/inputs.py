"""Check documents, labels, weights and seeds that users pass in, and turn them into plain values."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpad.data.columns import as_list, column_names
from mpad.data.labels import Labels, as_labels
from mpad.errors import InputError


def as_texts(documents: Iterable[Any]) -> list[str]:
    """Check documents and return them as a list; any list, array or column of strings is accepted."""
    if isinstance(documents, (str, bytes)):
        raise InputError("expected many documents, found one string; put it in a list: [text]")
    if isinstance(documents, Mapping):
        shown = ", ".join(map(str, list(documents)[:8]))
        raise InputError(f"expected many documents, found a {type(documents).__name__} of {shown}; pass one column")
    names = column_names(documents)
    if names is not None and len(names) != 1:
        shown = ", ".join(map(str, names[:8]))
        raise InputError(f"expected a column of texts, found a table of {shown}; pass one column: table['text']")
    column: Any = documents if names is None else documents[names[0]]  # type: ignore[index]
    shape = getattr(column, "shape", None)
    if shape is not None and len(shape) == 2 and shape[1] == 1:
        column = column.ravel()
    elif shape is not None and len(shape) != 1:
        raise InputError(f"expected a one-dimensional array of texts, found shape {shape}")
    try:
        texts = list(column) if isinstance(column, (list, tuple)) else as_list(column)
    except TypeError:
        raise InputError(f"expected a list of texts, found {type(documents).__name__}") from None
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(
                f"document {number} is not a string but {type(text).__name__} ({text!r:.40}); "
                "fill missing texts with ''"
            )
    return texts


def as_examples(documents: Iterable[Any], y: Any) -> tuple[list[str], NDArray[Any]]:
    """Check documents and their labels, and that there are as many of each."""
    texts, labels = as_texts(documents), as_labels(y)
    if len(texts) != len(labels):
        raise InputError(f"X has {len(texts):,} documents but y has {len(labels):,} labels")
    return texts, labels


def as_validation(validation: tuple[Iterable[str], Any], labels: Labels) -> tuple[list[str], NDArray[Any]]:
    """Check held-out documents and their labels; return texts and encoded targets."""
    texts, y = as_texts(validation[0]), as_labels(validation[1])
    if len(texts) != len(y) or not texts:
        raise InputError(f"validation needs as many labels as documents; found {len(y):,} and {len(texts):,}")
    return texts, labels.encode(y)


def as_weights(weights: Any, n: int) -> NDArray[np.float32]:
    """Check sample weights, one per document; None means all 1."""
    if weights is None:
        return np.ones(n, np.float32)
    array = np.asarray(weights, np.float32)
    if array.shape != (n,) or not np.isfinite(array).all() or (array < 0).any() or not array.sum() > 0:
        raise InputError(
            f"sample_weight must be {n:,} finite numbers, none below 0 and not all 0; found shape {array.shape}"
        )
    return array


def as_seed(random_state: Any) -> int:
    """Draw a seed from a scikit-learn random state: None, an int or a RandomState."""
    from sklearn.utils import check_random_state  # here: prediction does not need scikit-learn

    try:
        return int(check_random_state(random_state).randint(2**31 - 1))
    except ValueError as error:
        raise InputError(f"random_state: {error}") from None
