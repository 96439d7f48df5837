"""A spaCy component for a model: `nlp.add_pipe("mpad", config={"model": "folder"})` sets `doc.cats`.

spaCy finds it by the entry point `spacy_factories`. The model reads `doc.text` with its own tokenizer.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mpad import inference
from mpad.errors import DamagedModel, MissingModelFile
from mpad.extras import require
from mpad.storage.model_folder import FILES, SUMS, ModelFiles, open_model

_language = require("spacy.language", extra="spacy")
_util = require("spacy.util", extra="spacy")
_srsly = require("srsly", extra="spacy")


@_language.Language.factory("mpad", assigns=["doc.cats"], default_config={"model": None})  # type: ignore[untyped-decorator]
def make_component(nlp: Any, name: str, model: str | None) -> "MPADComponent":
    """Make the component; a pipeline loaded from disk has the model with it."""
    component = MPADComponent(name)
    # A saved pipeline still names the folder that it was made from, which may be gone.
    if model is not None and Path(model).is_dir():
        component.from_disk(model)
    elif model is not None:
        component.missing = f"{model}: no such folder; expected one that save() or 'mpad fit --out' wrote"
    return component


class MPADComponent:
    """A spaCy component that sets `doc.cats`: the probability of every class."""

    missing = "no model: nlp.add_pipe('mpad', config={'model': 'folder'})"

    def __init__(self, name: str) -> None:
        self.name = name
        self._pipeline: inference.Pipeline | None = None
        self._files: dict[str, bytes] = {}  # the model's folder, for saving the pipeline

    # Not named `model`: spaCy reads that attribute of every component, and this property raises while
    # the component is empty.
    @property
    def classifier(self) -> inference.Pipeline:
        """The loaded model; raises if there is none."""
        if self._pipeline is None:
            raise MissingModelFile(self.missing)
        return self._pipeline

    @property
    def labels(self) -> tuple[str, ...]:
        """The classes in `doc.cats`; empty before a model is loaded, because spaCy reads them then too."""
        return () if self._pipeline is None else tuple(str(label) for label in self._pipeline.labels.classes)

    def __call__(self, doc: Any) -> Any:
        """Classify one document."""
        return next(self.pipe([doc]))

    def pipe(self, stream: Iterable[Any], *, batch_size: int = 128) -> Iterator[Any]:
        """Classify documents in batches."""
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
        """Read a model folder, with all checks for untrusted data."""

        def read(files: ModelFiles) -> dict[str, bytes]:
            there = [name for name in FILES if name != SUMS or files.sums is not None]
            return {name: (files.path / name).read_bytes() for name in there}

        self._pipeline = inference.load(path)
        self._files = open_model(path, read)
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Return the model's folder as bytes."""
        _ = self.classifier
        return bytes(_srsly.msgpack_dumps(self._files))

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> "MPADComponent":
        """Read the bytes of `to_bytes`, with the checks of a folder."""
        files = _srsly.msgpack_loads(data)
        if not isinstance(files, dict) or not set(files) <= set(FILES):
            raise DamagedModel("expected the bytes of a model's folder, as to_bytes gives them")
        with TemporaryDirectory() as folder:
            for name, content in files.items():
                (Path(folder) / name).write_bytes(content)
            return self.from_disk(folder)
