"""Models side by side, by name: what is served."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from threading import Event, Lock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mpad import inference
from mpad.data.labels import Labels, as_lists
from mpad.errors import InputError, NotFinite
from mpad.graph.packed import PackedGraphs, with_edges
from mpad.linear.potentials import count_words
from mpad.registry import find_kind
from mpad.server.errors import Problem
from mpad.storage.checksums import SUMS, digest
from mpad.storage.model_folder import CONFIG, open_model, read_kind

if TYPE_CHECKING:
    from mpad.explain.explanation import Explanation
    from mpad.pipeline.document_model import DocumentModel


_MOST_EXAMPLES = 60
Stamp = tuple[tuple[int, ...] | None, ...]

_FIRST, _BEGUN = Lock(), Event()  # of explanations, which import torch


@dataclass(frozen=True)
class Counted:
    """What there was in some documents; words only where the model is an MPAD."""

    words: int = 0
    unknown: int = 0  # of these, words that are not in the vocabulary
    labels: Mapping[str, int] = field(default_factory=dict)  # how often each was predicted


@dataclass(frozen=True)
class Scores:
    """What a model says of some documents: probabilities where it has them, else scores alone."""

    labels: list[list[str]]  # chosen: one a document, or any number
    probabilities: NDArray[np.float64] | None  # (documents, classes)
    unknown: NDArray[np.float64] | None = None  # (documents,), share of words that the vocabulary has not; of MPAD
    counted: Counted = Counted()


class Served:
    """One model, ready to answer. MPAD answers by NumPy alone; torch is loaded for the first explanation."""

    def __init__(
        self,
        name: str,
        folder: Path,
        tokenizer: str | None = None,
        examples: Sequence[tuple[str, str]] = (),
        memory_mapped: bool = False,
    ) -> None:
        self.name, self.folder = name, folder
        self.stamp = stamp(folder)  # before anything is read: what changes meanwhile will be noticed
        self.loaded_again = partial(Served, name, folder, tokenizer, examples, memory_mapped)
        self.kind = read_kind(folder)
        self._entry = find_kind(self.kind)
        if self._entry is not None and self._entry.without_torch:
            self._model: Any = inference.load(folder, tokenizer, memory_mapped)
        else:
            self._model = _load_baseline(folder, tokenizer)
        self.version, self.digest = _identity(folder)
        self._facts = _facts(folder, self._entry is not None and self._entry.probabilities, examples)
        self._labels = _labels(self._model)
        self.many = self._labels.multilabel  # labels a document
        self.classes = [str(label) for label in self._labels.classes.tolist()]

    def predict(self, texts: Sequence[str]) -> Scores:
        """Answer on documents."""
        try:
            return self._predict(texts)
        except InputError as error:
            raise Problem(422, str(error)[:500]) from None
        except NotFinite as error:
            raise Problem(500, str(error)[:500]) from None

    def _predict(self, texts: Sequence[str]) -> Scores:
        if self._entry is None or not self._entry.probabilities:
            decided = self._labels.to_names(np.asarray(self._model.predict(texts)))
            return self._scores(as_lists(decided), None)
        words = unknown = 0
        shares: list[NDArray[np.float64]] = []
        if self._entry.without_torch:
            parts = list(self._model.answers(texts))
            probabilities = self._labels.probabilities(np.concatenate([answer.logits for _, answer in parts]))
            for graphs, _ in parts:
                of_each, unknown_of_each = count_words(graphs, len(self._model.vocabulary))
                words, unknown = words + int(of_each.sum()), unknown + int(unknown_of_each.sum())
                shares.append(unknown_of_each / np.maximum(of_each, 1))
        else:
            probabilities = np.asarray(self._model.predict_proba(texts))
        each = np.concatenate(shares) if shares else None
        return replace(self._scores(self.labels_of(probabilities), probabilities, words, unknown), unknown=each)

    def _scores(
        self, chosen: list[list[str]], probabilities: NDArray[np.float64] | None, words: int = 0, unknown: int = 0
    ) -> Scores:
        return Scores(chosen, probabilities, None, Counted(words, unknown, Counter(chain.from_iterable(chosen))))

    def labels_of(self, probabilities: NDArray[np.float64]) -> list[list[str]]:
        """What the model says of each document by these probabilities: one label, or any number of them."""
        return [[self.classes[column] for column in own] for own in self._labels.columns(probabilities)]

    @cached_property
    def _explained(self) -> "DocumentModel":
        from mpad.pipeline.document_model import DocumentModel

        if self._entry is None or not self._entry.without_torch:
            raise Problem(422, f"the model '{self.name}' is a '{self.kind}', which has no graph of words to explain")
        return DocumentModel.of(self._model)  # the same numbers: a model is held once

    def explain(self, text: str, label: str | None, method: str | None, without: Sequence[int] = ()) -> "Explanation":
        """Say why, of a document without some occurrences of its words."""
        with _using_torch():
            from mpad.explain import DEFAULT, explain

            try:
                return explain(self._explained, text, label, method or DEFAULT, without)
            except InputError as error:
                raise Problem(422, str(error)[:500]) from None

    def without(self, text: str, words: Sequence[int], edges: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        """Probabilities without some occurrences of words, and without some edges of the graph that is left."""
        with _using_torch():
            from mpad.explain.document import trace_document

            model = self._explained
            try:
                document = trace_document(model, text, words)
            except InputError as error:
                raise Problem(422, str(error)) from None
            graphs = document.graphs
            if edges:
                ids = dict(zip(document.tokens.words, document.ids.tolist(), strict=True))
                graphs = without_edges(ids, graphs, edges)
            return np.asarray(model.labels.probabilities(model.answer(graphs).logits)[0])

    def info(self) -> dict[str, Any]:
        """Facts for people."""
        result: dict[str, Any] = {"name": self.name, "kind": self.kind, "classes": self.classes, "many": self.many}
        result |= {"version": self.version, "digest": self.digest, **self._facts}
        if self._entry is not None and self._entry.without_torch:
            network = self._model.network.config
            result |= {"variant": network.variant, "steps": network.steps, "hidden": network.hidden}
            result |= {"words": len(self._model.vocabulary), "explains": _has_torch()}
        return result


def _has_torch() -> bool:
    """Whether torch is installed, which explanations need and answers do not."""
    return find_spec("torch") is not None


@contextmanager
def _using_torch() -> Iterator[None]:
    """Until something has been explained, one thread alone: two that import the same modules find them half made."""
    if not _has_torch():
        raise Problem(422, "this server has no torch, which explanations need: install it beside mpad")
    with nullcontext() if _BEGUN.is_set() else _FIRST:
        yield
        _BEGUN.set()


def without_edges(ids: Mapping[str, int], graphs: PackedGraphs, edges: Sequence[tuple[str, str]]) -> PackedGraphs:
    """The same document without the edges from one word to another, wherever they are."""
    gone = {(ids.get(source), ids.get(target)) for source, target in edges}
    shift = np.repeat(graphs.node_start[:-1], np.diff(graphs.edge_start))
    source, target = graphs.words[graphs.source + shift], graphs.words[graphs.target + shift]
    kept = np.array([pair not in gone for pair in zip(source.tolist(), target.tolist(), strict=True)], bool)
    return with_edges(graphs, kept[None])


def _load_baseline(folder: Path, tokenizer: str | None) -> Any:
    from mpad.paper import zoo

    return zoo.load(folder, "cpu", tokenizer)


def _labels(model: Any) -> Labels:
    result: Labels = model.labels_ if hasattr(model, "labels_") else model.labels
    return result


def stamp(folder: Path) -> Stamp:
    """Tells one state of a folder from another, by its own identity and that of two of its files."""

    def state(file: Path) -> tuple[int, ...] | None:
        try:
            stat = file.stat()
        except OSError:
            return None
        return stat.st_dev, stat.st_ino, *([] if file == folder else [stat.st_size, stat.st_mtime_ns])

    return tuple(map(state, (folder, folder / CONFIG, folder / SUMS)))


def _identity(folder: Path) -> tuple[str, str]:
    """By which mpad a folder was written, and the checksum of its checksums, as `sha256sum` gives it."""
    version = open_model(folder, lambda files: str(files.config["mpad"]))
    return version, digest(folder / SUMS) if (folder / SUMS).is_file() else ""  # format 1 had none


def _facts(folder: Path, probabilities: bool, examples: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """What the page says of a model before it is asked: its card, its size, documents to try it on."""
    card = open_model(folder, lambda files: files.card())
    kept = card.pop("examples", [])
    given = examples or [(pair[0], pair[1]) for pair in kept if isinstance(pair, list) and len(pair) == 2]
    size = sum(file.stat().st_size for file in folder.iterdir() if file.is_file())
    shown = {name: value for name, value in card.items() if isinstance(value, (str, int, float, bool))}
    return {
        "probabilities": probabilities,
        "megabytes": round(size / 1e6, 1),
        "card": shown,
        "examples": [{"label": str(label), "text": str(text)} for label, text in given[:_MOST_EXAMPLES]],
    }


def named_folders(given: Sequence[str]) -> dict[str, Path]:
    """Folders by name, from 'NAME=FOLDER', or named after themselves."""
    folders: dict[str, Path] = {}
    for one in given:
        name, _, folder = one.rpartition("=")
        name = name or Path(folder).resolve().name
        if name in folders:
            raise InputError(f"two models are named '{name}': name them apart, as in other={folder}")
        folders[name] = Path(folder)
    return folders


def load_all(
    given: Sequence[str],
    tokenizer: str | None = None,
    examples: Sequence[tuple[str, str]] = (),
    memory_mapped: bool = False,
) -> dict[str, Served]:
    """Load folders by name; `examples` are labels and texts to try them on."""
    folders = named_folders(given)
    return {name: Served(name, folder, tokenizer, examples, memory_mapped) for name, folder in folders.items()}
