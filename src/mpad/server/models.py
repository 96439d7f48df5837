"""Models side by side, by name: what is served."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mpad import runtime
from mpad.errors import InputError, NotFinite
from mpad.graph.packed import PackedGraphs
from mpad.labels import Labels
from mpad.registry import find_kind
from mpad.server.errors import Problem
from mpad.storage.model_folder import read_kind

if TYPE_CHECKING:
    from mpad.explain.explanation import Explanation
    from mpad.pipeline.document_model import DocumentModel


@dataclass(frozen=True)
class Scores:
    """What a model says of some documents: probabilities where it has them, else scores alone."""

    labels: list[str]  # chosen, one a document
    probabilities: NDArray[np.float64] | None  # (documents, classes)


class Served:
    """One model, ready to answer. MPAD answers by NumPy alone; torch is loaded for the first explanation."""

    def __init__(self, name: str, folder: Path, tokenizer: str | None = None) -> None:
        self.name = name
        self.kind = read_kind(folder)
        self._entry = find_kind(self.kind)
        load = runtime.load if self._entry is not None and self._entry.without_torch else _load_baseline
        self._model: Any = load(folder, tokenizer)
        labels = _labels(self._model)
        if labels.multilabel:
            raise InputError(f"{folder}: the page and the API take models of one label a document")
        self.classes = [str(label) for label in labels.classes.tolist()]

    def predict(self, texts: Sequence[str]) -> Scores:
        """Answer on documents."""
        try:
            return self._predict(texts)
        except InputError as error:
            raise Problem(422, str(error)[:500]) from None
        except NotFinite as error:
            raise Problem(500, str(error)[:500]) from None

    def _predict(self, texts: Sequence[str]) -> Scores:
        if self._entry is not None and self._entry.probabilities:
            probabilities = np.asarray(self._model.predict_proba(texts))
            return Scores([self.classes[k] for k in probabilities.argmax(1)], probabilities)
        return Scores([str(label) for label in self._model.predict(texts)], None)

    @cached_property
    def _explained(self) -> "DocumentModel":
        from mpad.pipeline.document_model import DocumentModel

        if self._entry is None or not self._entry.without_torch:
            raise Problem(422, f"the model '{self.name}' is a '{self.kind}', which has no graph of words to explain")
        return DocumentModel.of(self._model)  # the same numbers: a model is held once

    def explain(self, text: str, label: str | None, method: str | None) -> "Explanation":
        """Say why."""
        from mpad.explain import DEFAULT, explain

        try:
            return explain(self._explained, text, label, method or DEFAULT)
        except InputError as error:
            raise Problem(422, str(error)[:500]) from None

    def without(self, text: str, words: Sequence[int], edges: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        """Probabilities without some occurrences of words, and without some edges of the graph that is left."""
        from mpad.explain.document import trace_document

        model = self._explained
        document = trace_document(model, text)
        n = len(document.ids)
        outside = [word for word in words if not 0 <= word < n]
        if outside:
            raise Problem(422, f"the document has {n} words, numbered from 0; there is no word {outside[0]}")
        kept = np.ones((1, n), bool)
        kept[0, list(words)] = False
        graphs = document.build(kept)
        if edges:
            ids = dict(zip(document.tokens.words, document.ids.tolist(), strict=True))
            graphs = without_edges(ids, graphs, edges)
        return np.asarray(model.labels.probabilities(model.answer(graphs).logits)[0])

    def info(self) -> dict[str, Any]:
        """Facts for people."""
        result: dict[str, Any] = {"name": self.name, "kind": self.kind, "classes": self.classes}
        if self._entry is not None and self._entry.without_torch:
            network = self._model.network.config
            result |= {"variant": network.variant, "steps": network.steps, "hidden": network.hidden}
            result |= {"words": len(self._model.vocabulary), "explains": True}
        return result


def without_edges(ids: Mapping[str, int], graphs: PackedGraphs, edges: Sequence[tuple[str, str]]) -> PackedGraphs:
    """The same document without the edges from one word to another, wherever they are."""
    gone = {(ids.get(source), ids.get(target)) for source, target in edges}
    shift = np.repeat(graphs.node_start[:-1], np.diff(graphs.edge_start))
    source, target = graphs.words[graphs.source + shift], graphs.words[graphs.target + shift]
    kept = np.array([pair not in gone for pair in zip(source.tolist(), target.tolist(), strict=True)], bool)
    owner = np.repeat(np.arange(graphs.n_graphs), np.diff(graphs.edge_start))[kept]
    return replace(
        graphs,
        source=graphs.source[kept],
        target=graphs.target[kept],
        weight=graphs.weight[kept],
        edge_start=np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=graphs.n_graphs))]),
    )


def _load_baseline(folder: Path, tokenizer: str | None) -> Any:
    from mpad import zoo

    return zoo.load(folder, "cpu", tokenizer)


def _labels(model: Any) -> Labels:
    result: Labels = (
        model.model_.labels if hasattr(model, "model_") else getattr(model, "labels_", None) or model.labels
    )
    return result


def load_all(given: Sequence[str], tokenizer: str | None = None) -> dict[str, Served]:
    """Load folders, named 'NAME=FOLDER' or after themselves."""
    served: dict[str, Served] = {}
    for one in given:
        name, _, folder = one.rpartition("=")
        name = name or Path(folder).resolve().name
        if name in served:
            raise InputError(f"two models are named '{name}': name them apart, as in other={folder}")
        served[name] = Served(name, Path(folder), tokenizer)
    return served
