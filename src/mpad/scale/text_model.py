"""Prediction with a model folder of any kind, for batches of documents and for the server."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpad.graph.packed import PackedGraphs
from mpad.inference.network import Answer
from mpad.inference.pipeline import Pipeline, load
from mpad.linear.potentials import count_words
from mpad.registry import find_kind
from mpad.storage.model_folder import read_kind
from mpad.text.tokenizer import Tokenizer

OwnTokenizer = str | Tokenizer | Callable[[str], Iterable[str]] | None


class Predictions(NamedTuple):
    """Predictions for a batch of documents."""

    labels: list[Any]  # one per document, or a list per document for a multi-label model
    probabilities: NDArray[np.float64] | None  # (documents, classes), None if the model has none
    words: NDArray[np.int64] | None = None  # (documents, 2): number of words, and of unknown ones; MPAD only

    def slice(self, first: int, last: int) -> "Predictions":
        """Return the predictions of some consecutive documents."""
        parts: list[Any] = [None if part is None else part[first:last] for part in self]
        return Predictions(*parts)


class TextModel:
    """Model of a folder, loaded without torch on a CPU if its kind allows it."""

    def __init__(
        self, folder: Path, tokenizer: OwnTokenizer = None, device: str = "cpu", memory_mapped: bool = False
    ) -> None:
        self.kind = read_kind(folder)
        entry = find_kind(self.kind)
        self.has_probabilities = entry is not None and entry.probabilities
        self.has_graphs = entry is not None and entry.without_torch
        if self.has_graphs and device == "cpu":
            self.model: Any = load(folder, tokenizer, memory_mapped)
        else:  # importing torch takes two seconds
            from mpad.estimator.text_classifier import TextClassifier
            from mpad.paper import zoo

            loaded = zoo.load(folder, device, tokenizer)
            self.model = loaded.model_ if isinstance(loaded, TextClassifier) else loaded
        self.labels = self.model.labels if isinstance(self.model, Pipeline) else self.model.labels_

    def predict(self, texts: Sequence[str]) -> Predictions:
        """Predict the labels of documents."""
        if isinstance(self.model, Pipeline):
            return self.label_answers(list(self.model.answers(texts)))
        return self.label_scores(self.model.class_scores(texts))

    def label_answers(self, answers: Sequence[tuple[PackedGraphs, Answer]]) -> Predictions:
        """Return the predictions for packed graphs that a pipeline has answered."""
        logits = np.concatenate([answer.logits for _, answer in answers])
        if not self.has_graphs:
            return self.label_scores(logits)
        n_known = len(self.model.vocabulary)
        words = np.concatenate([np.stack(count_words(graphs, n_known), axis=1) for graphs, _ in answers])
        return self.label_scores(logits, words)

    def label_scores(self, scores: NDArray[Any], words: NDArray[np.int64] | None = None) -> Predictions:
        """Return the predictions for scores of the classes: (documents, classes)."""
        labels = self.labels.to_names(self.labels.decide(scores))
        return Predictions(labels, self.labels.probabilities(scores) if self.has_probabilities else None, words)
