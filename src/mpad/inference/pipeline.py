"""The pipeline text → graphs → logits → labels, and how a folder becomes one."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mpad.data.inputs import as_texts
from mpad.data.labels import Labels
from mpad.errors import InputError
from mpad.graph.build import GraphConfig, build_graphs
from mpad.inference.network import Answer, make_network
from mpad.linear.potentials import Potentials
from mpad.storage.model_folder import VECTORS, ModelFolder, open_model, read_network
from mpad.text.contextual import Transformer, chunk_texts
from mpad.text.tokenizer import Tokenizer, saved_tokenizer
from mpad.text.vocabulary import EncodedCorpus, Vocabulary


@dataclass(frozen=True)
class Pipeline:
    """A model from text to label: tokenizer, vocabulary, graphs, network, linear part, labels.

    Estimators, the server, the command line and explanations all hold one. Its network computes with NumPy if `load`
    has read the folder, and with torch (`mpad.network`) if an estimator has; this class does not need torch.
    """

    tokenizer: Tokenizer
    vocabulary: Vocabulary
    graph_config: GraphConfig
    network: Any  # of mpad.inference, or of mpad.network; both have config, by_sentence, device and answer(packed)
    labels: Labels
    potentials: Potentials | None = None  # the linear part, if the model has one
    transformer: Transformer | None = None  # source of node features; None: word vectors
    kind: str = "mpad"

    def with_network(self, network: Any) -> Self:
        """Return the pipeline with another network."""
        return replace(self, network=network)

    def packed(self, corpus: EncodedCorpus, texts: Sequence[str]) -> Any:
        """Build the graphs of texts from the ids of their words."""
        graphs = build_graphs(corpus, self.graph_config)
        if self.transformer is None:
            return graphs
        from mpad.graph.features import with_features  # here: most models do not need it

        parts = self.tokenizer, self.network.by_sentence, self.transformer
        return with_features(graphs, corpus, texts, *parts, str(self.network.device))

    def pack(self, texts: Sequence[str]) -> Any:
        """Build the packed graphs of texts, by document or by sentence as the variant needs.

        Parameters
        ----------
        texts : sequence of str
            The documents.

        Returns
        -------
        PackedGraphs

        """
        return self.packed(self.vocabulary.encode(texts, self.tokenizer, self.network.by_sentence), texts)

    def packs(self, texts: Iterable[str]) -> Iterator[Any]:
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
        parts = self.vocabulary.encode_parts(checked, self.tokenizer, self.network.by_sentence)
        return (self.packed(corpus, part) for part, corpus in parts)

    def answer(self, packed: Any) -> Answer:
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
        answer: Answer = self.network.answer(packed)
        return answer.with_potentials(self.potentials, packed)

    def answers(self, texts: Iterable[str]) -> Iterator[tuple[Any, Answer]]:
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

    def vectors(self, texts: Iterable[str]) -> NDArray[np.float32]:
        """Return the document vectors that the last layer classifies.

        Parameters
        ----------
        texts : iterable of str
            The documents.

        Returns
        -------
        ndarray of shape (n, width)

        """
        return np.concatenate([answer.vectors for _, answer in self.answers(texts)])

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

    def member_probabilities(self, texts: Iterable[str]) -> NDArray[np.float64]:
        """Return the probabilities that each member of an ensemble gives.

        Parameters
        ----------
        texts : iterable of str
            The documents.

        Returns
        -------
        ndarray of shape (members, n, n_classes)

        Raises
        ------
        InputError
            The model is one network.

        """
        each = [answer.member_logits for _, answer in self.answers(texts)]
        if each[0] is None:
            raise InputError("this model is one network; fit it with members=5, say, to see how far members differ")
        logits = np.concatenate([members for members in each if members is not None], axis=1)
        return np.stack([self.labels.probabilities(member) for member in logits])

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
    return open_model(folder, lambda files: read_pipeline(read_network(files), tokenizer, memory_mapped))


def read_pipeline(
    folder: ModelFolder,
    tokenizer: str | Tokenizer | Callable[[str], Iterable[str]] | None = None,
    memory_mapped: bool = False,
) -> Pipeline:
    """Return the pipeline of an MPAD folder whose files have been read and checked."""
    config = folder.mpad_config()
    tensors = folder.tensors(config.tensor_shapes(), memory_mapped)
    potentials, vectors = folder.potentials(tensors), tensors.pop(VECTORS)
    network, graph = make_network(config, tensors, vectors), folder.graph or GraphConfig()
    parts = saved_tokenizer(folder.tokenizer, tokenizer), folder.vocabulary, graph, network, folder.labels
    return Pipeline(*parts, potentials, folder.transformer)
