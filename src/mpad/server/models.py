"""Models of a server, by name."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import cached_property, partial
from importlib.util import find_spec
from pathlib import Path
from threading import Event, Lock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mpad.data.labels import as_lists
from mpad.errors import InputError, NotFinite
from mpad.graph.packed import with_edges
from mpad.scale.text_model import Predictions, TextModel
from mpad.server.errors import HTTPProblem
from mpad.storage.checksums import SUMS, digest
from mpad.storage.model_folder import CONFIG, open_model

if TYPE_CHECKING:
    from mpad.explain.explanation import Explanation
    from mpad.inference.pipeline import Pipeline

_MAX_EXAMPLES = 60
_TORCH_LOCK, _TORCH_IMPORTED = Lock(), Event()
FolderState = tuple[tuple[int, ...] | None, ...]


class LoadedModel(TextModel):
    """Model of a server; its labels are strings. MPAD predicts with NumPy, and imports torch for explanations."""

    def __init__(
        self,
        name: str,
        folder: Path,
        tokenizer: str | None = None,
        examples: Sequence[tuple[str, str]] = (),
        memory_mapped: bool = False,
    ) -> None:
        self.name, self.folder = name, folder
        self.state = folder_state(folder)  # read first, so that a change during loading is noticed
        self.reload = partial(LoadedModel, name, folder, tokenizer, examples, memory_mapped)
        super().__init__(folder, tokenizer, memory_mapped=memory_mapped)
        self._facts = _read_facts(folder, examples)
        self.version, self.digest = self._facts["version"], self._facts["digest"]
        self.many = self.labels.multilabel
        self.classes = [str(label) for label in self.labels.classes.tolist()]

    def predict(self, texts: Sequence[str]) -> Predictions:
        """Predict the labels of documents."""
        try:
            return super().predict(texts)
        except InputError as error:
            raise HTTPProblem(422, str(error)[:500]) from None
        except NotFinite as error:
            raise HTTPProblem(500, str(error)[:500]) from None

    def label_scores(self, scores: NDArray[Any], words: NDArray[np.int64] | None = None) -> Predictions:
        """Return the predictions for scores of the classes, with a list of labels per document."""
        predictions = super().label_scores(scores, words)
        return predictions._replace(labels=as_lists(predictions.labels))

    @cached_property
    def _torch_model(self) -> "Pipeline":
        """The model for explanations: its network is one of torch with the same weights in the same memory."""
        from mpad.ensemble import as_torch

        if not self.has_graphs:
            raise HTTPProblem(422, f"the model '{self.name}' is a '{self.kind}', which has no graph of words")
        return as_torch(self.model)

    def explain(self, text: str, label: str | None, method: str | None, without: Sequence[int] = ()) -> "Explanation":
        """Explain a label of a document after removing some word occurrences."""
        with _exclusive_first_use():
            from mpad.explain import DEFAULT, explain

            try:
                return explain(self._torch_model, text, label, method or DEFAULT, without)
            except InputError as error:
                raise HTTPProblem(422, str(error)[:500]) from None

    def predict_without(self, text: str, words: Sequence[int], edges: Sequence[tuple[str, str]]) -> Predictions:
        """Predict the label of a document after removing some word occurrences, then some edges."""
        with _exclusive_first_use():
            from mpad.explain.document import trace_document

            model = self._torch_model
            try:
                document = trace_document(model, text, words)
            except InputError as error:
                raise HTTPProblem(422, str(error)) from None
            graphs = document.graphs
            if edges:
                ids = dict(zip(document.tokens.words, document.ids.tolist(), strict=True))
                removed = {(ids.get(source), ids.get(target)) for source, target in edges}
                pairs = zip(*(graphs.words[nodes].tolist() for nodes in document.edge_nodes), strict=True)
                graphs = with_edges(graphs, np.array([[pair not in removed for pair in pairs]], bool))
            return self.label_answers([(graphs, model.answer(graphs))])

    def info(self) -> dict[str, Any]:
        """Describe the model, as in `ModelInfo`."""
        result: dict[str, Any] = {"name": self.name, "kind": self.kind, "classes": self.classes, "many": self.many}
        result |= {"probabilities": self.has_probabilities, **self._facts}
        if self.has_graphs:
            network = self.model.network.config
            result |= {"variant": network.variant, "steps": network.steps, "hidden": network.hidden}
            result |= {"words": len(self.model.vocabulary), "explains": _has_torch()}
        return result


def _has_torch() -> bool:
    """Return whether torch is installed; explanations need it, predictions do not."""
    return find_spec("torch") is not None


@contextmanager
def _exclusive_first_use() -> Iterator[None]:
    """Let one thread in at a time until one has finished: concurrent imports of torch see half-initialized modules."""
    if not _has_torch():
        raise HTTPProblem(422, "explanations need torch, which this server does not have: install it alongside mpad")
    with nullcontext() if _TORCH_IMPORTED.is_set() else _TORCH_LOCK:
        yield
        _TORCH_IMPORTED.set()


def folder_state(folder: Path) -> FolderState:
    """Return a value that changes when the folder or one of its two key files is replaced."""

    def state(file: Path) -> tuple[int, ...] | None:
        try:
            stat = file.stat()
        except OSError:
            return None
        return stat.st_dev, stat.st_ino, *([] if file == folder else [stat.st_size, stat.st_mtime_ns])

    return tuple(map(state, (folder, folder / CONFIG, folder / SUMS)))


def _read_facts(folder: Path, examples: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Return the version, the digest, the card, the size and the example documents of a model."""
    version, card = open_model(folder, lambda files: (str(files.config["mpad"]), files.card()))
    kept = card.pop("examples", [])
    chosen = examples or [(pair[0], pair[1]) for pair in kept if isinstance(pair, list) and len(pair) == 2]
    size = sum(file.stat().st_size for file in folder.iterdir() if file.is_file())
    return {
        "version": version,
        "digest": digest(folder / SUMS) if (folder / SUMS).is_file() else "",  # format 1 had none
        "megabytes": round(size / 1e6, 1),
        "card": {name: value for name, value in card.items() if isinstance(value, (str, int, float, bool))},
        "examples": [{"label": str(label), "text": str(text)} for label, text in chosen[:_MAX_EXAMPLES]],
    }


def named_folders(arguments: Sequence[str]) -> dict[str, Path]:
    """Return folders by name, from "NAME=FOLDER" or from FOLDER, which is its own name."""
    folders: dict[str, Path] = {}
    for argument in arguments:
        name, _, folder = argument.rpartition("=")
        name = name or Path(folder).resolve().name
        if name in folders:
            raise InputError(f"two models are named '{name}': name them apart, as in other={folder}")
        folders[name] = Path(folder)
    return folders


def load_all(
    arguments: Sequence[str],
    tokenizer: str | None = None,
    examples: Sequence[tuple[str, str]] = (),
    memory_mapped: bool = False,
) -> dict[str, LoadedModel]:
    """Load models from "NAME=FOLDER" or FOLDER; `examples` are pairs of label and text that the page offers."""
    folders = named_folders(arguments)
    return {name: LoadedModel(name, folder, tokenizer, examples, memory_mapped) for name, folder in folders.items()}
