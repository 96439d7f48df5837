"""A model as a component of spaCy: `nlp.add_pipe("mpad", config={"model": "folder"})` sets `doc.cats`.

spaCy finds it by the entry point `spacy_factories`. The model reads `doc.text`, by its own tokenizer.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mpad import inference
from mpad.errors import DamagedModel, MissingModelFile
from mpad.extras import require
from mpad.storage.checksums import SUMS
from mpad.storage.model_folder import FILES, ModelFiles, open_model

_language = require("spacy.language", extra="spacy")
_util = require("spacy.util", extra="spacy")
_srsly = require("srsly", extra="spacy")


@_language.Language.factory("mpad", assigns=["doc.cats"], default_config={"model": None})  # type: ignore[untyped-decorator]
def make_component(nlp: Any, name: str, model: str | None) -> "MPADComponent":
    """Make the component; a pipeline that is read from a disk brings the model with it."""
    component = MPADComponent(name)
    # A saved pipeline still names the folder that it was made from, which need not be there any more.
    if model is not None and Path(model).is_dir():
        component.from_disk(model)
    elif model is not None:
        component.missing = f"{model}: no such folder; expected one that save() or 'mpad fit --out' wrote"
    return component


class MPADComponent:
    """Text of documents → `doc.cats`: the probability of every class."""

    missing = "no model: nlp.add_pipe('mpad', config={'model': 'folder'})"

    def __init__(self, name: str) -> None:
        self.name = name
        self._pipeline: inference.Pipeline | None = None
        self._files: dict[str, bytes] = {}  # the model's folder, for whoever saves the pipeline

    # spaCy asks every component whether it has a `model` of its own kind, also one that is still empty:
    # what raises is therefore not called that.
    @property
    def classifier(self) -> inference.Pipeline:
        """What answers."""
        if self._pipeline is None:
            raise MissingModelFile(self.missing)
        return self._pipeline

    @property
    def labels(self) -> tuple[str, ...]:
        """The classes, as `doc.cats` names them; none before there is a model, when spaCy asks too."""
        return () if self._pipeline is None else tuple(str(label) for label in self._pipeline.labels.classes)

    def __call__(self, doc: Any) -> Any:
        """Classify one document."""
        return next(self.pipe([doc]))

    def pipe(self, stream: Iterable[Any], *, batch_size: int = 128) -> Iterator[Any]:
        """Classify documents, a batch at a time."""
        labels = self.labels
        for docs in _util.minibatch(stream, size=batch_size):
            answers = self.classifier.predict_proba([doc.text for doc in docs]).tolist()
            for doc, probabilities in zip(docs, answers, strict=True):
                doc.cats = {**doc.cats, **dict(zip(labels, probabilities, strict=True))}
                yield doc

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Write the model's folder."""
        _ = self.classifier
        folder = Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in self._files.items():
            (folder / name).write_bytes(data)

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> "MPADComponent":
        """Read a model folder, which may come from anybody: what does not hold together is refused."""

        def read(files: ModelFiles) -> dict[str, bytes]:
            there = [name for name in FILES if name != SUMS or files.sums is not None]
            return {name: (files.path / name).read_bytes() for name in there}

        self._pipeline = inference.load(path)
        self._files = open_model(path, read)
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """The model's folder as bytes."""
        _ = self.classifier
        return bytes(_srsly.msgpack_dumps(self._files))

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> "MPADComponent":
        """Read what `to_bytes` gave, checked as a folder is."""
        files = _srsly.msgpack_loads(data)
        if not isinstance(files, dict) or not set(files) <= set(FILES):
            raise DamagedModel("expected the bytes of a model's folder, as to_bytes gives them")
        with TemporaryDirectory() as folder:
            for name, content in files.items():
                (Path(folder) / name).write_bytes(content)
            return self.from_disk(folder)
