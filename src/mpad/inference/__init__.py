"""Prediction without torch: text → probabilities with NumPy and compiled code.

>>> from mpad import inference
>>> model = inference.load("my-model")                     # doctest: +SKIP
>>> model.predict(["a moving film"])                     # doctest: +SKIP
array(['positive'], dtype='<U8')

For serving and fast startup. It needs only a model folder written by `MPADClassifier.save` or `mpad fit`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpad.data.inputs import as_texts
from mpad.data.labels import Labels
from mpad.graph.build import GraphConfig, build_graphs
from mpad.graph.packed import PackedGraphs
from mpad.inference.answer import Answer, with_potentials
from mpad.inference.ensemble import Ensemble, make_network
from mpad.inference.network import Network
from mpad.linear.potentials import Potentials
from mpad.storage.model_folder import VECTORS, ModelFiles, open_model, read_network
from mpad.text.contextual import Transformer, chunk_texts
from mpad.text.tokenizer import Tokenizer, saved_tokenizer
from mpad.text.vocabulary import Vocabulary

__all__ = ["Answer", "Network", "Pipeline", "load"]


@dataclass(frozen=True)
class Pipeline:
    """A model from text to label, without torch, used by the estimator, the server and the command line."""

    tokenizer: Tokenizer
    vocabulary: Vocabulary
    graph_config: GraphConfig
    network: Network | Ensemble
    labels: Labels
    potentials: Potentials | None = None  # the linear part, if the model has one
    transformer: Transformer | None = None  # source of node features; None: word vectors

    def pack(self, texts: Sequence[str]) -> PackedGraphs:
        """Build the packed graphs of texts, by document or by sentence as the variant needs.

        Parameters
        ----------
        texts : sequence of str
            The documents.

        Returns
        -------
        PackedGraphs

        """
        sentences = self.network.config.hierarchical
        corpus = self.vocabulary.encode(texts, self.tokenizer, sentences)
        graphs = build_graphs(corpus, self.graph_config)
        if self.transformer is None:
            return graphs
        from mpad.graph.features import with_features  # here: most models do not need it

        return with_features(graphs, corpus, texts, self.tokenizer, sentences, self.transformer)

    def packs(self, texts: Iterable[str]) -> Iterator[PackedGraphs]:
        """Yield the packed graphs of texts in parts whose new words fit the spare rows.

        Parameters
        ----------
        texts : iterable of str
            The documents.

        Returns
        -------
        iterator of PackedGraphs

        """
        checked = as_texts(texts)
        if self.transformer is not None:
            return map(self.pack, chunk_texts(checked))
        parts = self.vocabulary.encode_parts(checked, self.tokenizer, self.network.config.hierarchical)
        return (build_graphs(corpus, self.graph_config) for _, corpus in parts)

    def answer(self, packed: PackedGraphs) -> Answer:
        """Predict packed graphs.

        Parameters
        ----------
        packed : PackedGraphs
            The graphs, as `pack` or `packs` builds them.

        Returns
        -------
        Answer
            Logits, document vectors and attention, in the order of the documents.

        """
        return with_potentials(self.network(packed), self.potentials, packed)

    def logits(self, texts: Iterable[str]) -> NDArray[np.float32]:
        """Return the logits of each class.

        Parameters
        ----------
        texts : iterable of str
            The documents.

        Returns
        -------
        ndarray of shape (n, n_classes)

        """
        return np.concatenate([answer.logits for _, answer in self.answers(texts)])

    def answers(self, texts: Iterable[str]) -> Iterator[tuple[PackedGraphs, Answer]]:
        """Yield packed graphs and their predictions, part by part.

        Parameters
        ----------
        texts : iterable of str
            The documents.

        Returns
        -------
        iterator of (PackedGraphs, Answer)

        """
        for packed in self.packs(texts):
            yield packed, self.answer(packed)

    def predict_proba(self, texts: Iterable[str]) -> NDArray[np.float64]:
        """Return the probability of each class.

        Parameters
        ----------
        texts : iterable of str
            The documents.

        Returns
        -------
        ndarray of shape (n, n_classes)

        """
        return self.labels.probabilities(self.logits(texts))

    def predict(self, texts: Iterable[str]) -> NDArray[Any]:
        """Return the predicted labels.

        Parameters
        ----------
        texts : iterable of str
            The documents.

        Returns
        -------
        ndarray of shape (n,)
            Labels; for a multi-label model, indicators of shape (n, n_classes).

        """
        return self.labels.decide(self.logits(texts))


def load(
    folder: str | Path,
    tokenizer: str | Tokenizer | Callable[[str], Iterable[str]] | None = None,
    memory_mapped: bool = False,
) -> Pipeline:
    """Load a model folder for prediction without torch.

    Parameters
    ----------
    folder : str or Path
        A folder written by `MPADClassifier.save` or `mpad fit`.
    tokenizer : str, Tokenizer or callable, optional
        The tokenizer of a model that was trained with a tokenizer of its own; folders never import code.
    memory_mapped : bool, default=False
        Map word vectors and weights from the file, so that processes share memory. The file must not be written to
        while it is mapped; replacing the folder is safe.

    Returns
    -------
    Pipeline

    Raises
    ------
    StoreError
        The folder is missing, damaged, or written by a newer version.

    """

    def read(files: ModelFiles) -> Pipeline:
        result = read_network(files)
        config = result.mpad_config()
        chosen = saved_tokenizer(result.tokenizer, tokenizer)
        tensors = result.tensors(config.tensor_shapes(), memory_mapped)
        potentials, vectors = result.potentials(tensors), tensors.pop(VECTORS)
        network = make_network(config, tensors, vectors)
        parts = chosen, result.vocabulary, result.graph or GraphConfig(), network, result.labels
        return Pipeline(*parts, potentials, result.transformer)

    return open_model(folder, read)
