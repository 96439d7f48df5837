"""A model's folder ↔ its files, checked; without torch, so that a model can be read where torch is not.

config.json         everything but numbers: format version, network, graph, tokenizer, labels, estimator, model card
vocabulary.json     the words, in the order of their ids
model.safetensors   the weights, and the word vectors (float16 where they were not learnt; 8 bits if so exported)
SHA256SUMS          a checksum of each file, as `sha256sum --check` reads it

A folder is data, whoever it comes from. Nothing that it names is imported; every value has the type and the range that
the code expects; every tensor has the name, the shape and the type that the configuration asks for and holds finite
numbers, and all that is known before anything is computed. Checksums tell damage, not malice.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from mpad.config import MPADConfig, Shapes
from mpad.data.labels import Labels
from mpad.errors import DamagedModel, FutureFormat, InputError, MissingModelFile, ShapeMismatch, StoreError
from mpad.files import atomic
from mpad.files.safe_json import read_json
from mpad.files.settings import as_settings
from mpad.files.tensors import Arrays, Expected, check_finite, read_tensors
from mpad.graph.build import GraphConfig
from mpad.linear.potentials import INTEGERS, PREFIX, Potentials, PotentialShape
from mpad.storage import int8
from mpad.storage.checksums import SUMS, digest, read_small, read_sums
from mpad.storage.model_formats import FORMAT, network_settings, tensor_name
from mpad.text.contextual import Transformer
from mpad.text.tokenizer import DOCUMENT_END, SENTENCE_END
from mpad.text.vocabulary import Vocabulary

CONFIG, VOCABULARY, WEIGHTS = "config.json", "vocabulary.json", "model.safetensors"
_FIRST = frozenset({CONFIG, VOCABULARY, WEIGHTS})  # the files of a folder of format 1
VECTORS = "vectors"  # name of the tensor that holds the word vectors
FILES = (CONFIG, VOCABULARY, WEIGHTS, SUMS)  # all that a folder of a network holds
TABLES = [VECTORS, PREFIX + "potential"]  # tensors that may be kept in 8 bits
Value = TypeVar("Value")


# ── Writing ──


@contextmanager
def new_folder(folder: str | Path, config: Mapping[str, Any]) -> Iterator[Path]:
    """Give a folder to write a model's other files to; with its configuration and checksums it takes its place."""
    with atomic.write_folder(Path(folder), our_files) as fresh:
        yield fresh
        write_json(fresh / CONFIG, config, indent=2)
        sums = {file.name: digest(file) for file in fresh.iterdir()}
        lines = [f"{sums[name]}  {name}\n" for name in sorted(sums)]
        (fresh / SUMS).write_text("".join(lines), encoding="utf-8")


def write_json(file: Path, value: Any, indent: int | None = None) -> None:
    """Write a value as JSON."""
    file.write_text(json.dumps(value, indent=indent) + "\n", encoding="utf-8")


def write_tensors(folder: Path, tensors: Mapping[str, NDArray[Any]]) -> None:
    """Write a model's numbers."""
    (folder / WEIGHTS).write_bytes(save({name: np.asarray(value, order="C") for name, value in tensors.items()}))


def our_files(folder: Path) -> Set[str] | None:
    """Names that a model folder may hold; None where a folder is not one."""
    try:
        config, sums = _read_config(folder), read_sums(folder)
    except StoreError:  # no model; or one of a newer version: who knows what its files are
        return None
    if sums is not None:
        return {*sums, SUMS}
    return _FIRST | {"model.bin"} if config.get("kind") == "fasttext" else _FIRST


def check_destination(folder: str | Path) -> None:
    """Refuse a place where a model cannot be written, or that holds anything but a model; before training."""
    atomic.check_destination(Path(folder), our_files)


# ── Reading ──


_HEADER = 1 << 20  # bytes that names and shapes of tensors take at most


@dataclass(frozen=True)
class ModelFiles:
    """The files of a folder, each compared with its checksum when it is read."""

    path: Path
    config: dict[str, Any]
    sums: Mapping[str, str] | None  # None of a folder that was written before there were checksums

    @property
    def kind(self) -> str:
        """Which model it holds, by its name in the zoo."""
        return str(self.config.get("kind", "mpad"))

    def damaged(self, name: str, said: str) -> DamagedModel:
        """The error that says what is wrong with a file."""
        return DamagedModel(f"{self.path / name}: {said}")

    def check(self, name: str) -> Path:
        """Compare a file with its checksum; where it is."""
        file = self.path / name
        if not file.is_file():
            raise MissingModelFile(f"{file}: no such file: {self.path} is not a model, or not a whole one")
        if self.sums is not None and self.sums.get(name) != digest(file):
            raise self.damaged(name, f"not as it was saved: its checksum differs from that in {SUMS}")
        return file

    def read_json(self, name: str) -> Any:
        """Read a file of JSON."""
        data = self.check(name).read_bytes()
        return read_json(data, lambda said: self.damaged(name, f"not valid JSON: {said}"))

    def words(self) -> list[str]:
        """Read the vocabulary."""
        words = self.read_json(VOCABULARY)
        if not isinstance(words, list) or set(map(type, words)) - {str}:
            raise self.damaged(VOCABULARY, "expected a list of words")
        if len(set(words)) < len(words):
            raise self.damaged(VOCABULARY, "a word stands there twice")
        letters = "".join(words)
        if DOCUMENT_END in letters or SENTENCE_END in letters:
            raise self.damaged(VOCABULARY, "a word holds a control character that no tokenizer gives")
        return words

    def labels(self) -> Labels:
        """The classes."""
        return self._parsed("labels", dict, Labels.from_json)

    def estimator(self) -> dict[str, Any]:
        """The estimator's parameters."""
        return self._parsed("estimator", dict, dict)

    def card(self) -> dict[str, Any]:
        """When, on what and with which result it was trained; nothing of a folder of format 1."""
        return self._parsed("card", dict, dict) if "card" in self.config else {}

    def _parsed(self, name: str, kind: type, parse: Callable[[Any], Value]) -> Value:
        if not isinstance(self.config.get(name), kind):
            raise self.damaged(CONFIG, f"'{name}' is missing, or is not what it should be")
        try:
            return parse(self.config[name])
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise self.damaged(CONFIG, f"'{name}': {type(error).__name__}: {error}") from None

    def settings(self, name: str, kind: type[Value]) -> Value:
        """Some of the configuration as a dataclass, its values of the types and in the ranges that it asks for."""
        return as_settings(kind, self.config.get(name), lambda said: self.damaged(CONFIG, f"'{name}': {said}"))

    def tensors(
        self,
        expected: Expected,
        integers: Set[str] = frozenset(),
        tables: Set[str] = frozenset(),
        memory_mapped: bool = False,
    ) -> Arrays:
        """Read all tensors: exactly the expected ones; `tables` are of 8 bits."""
        file = self.path / WEIGHTS
        known = all(n is not None for shape in expected.values() for n in shape)
        most = 8 * sum(prod(n or 0 for n in shape) for shape in expected.values()) + _HEADER
        if known and file.is_file() and file.stat().st_size > most:  # before it is read, which can take minutes
            raise self.damaged(WEIGHTS, f"has {file.stat().st_size:,} bytes, more than its tensors can take ({most:,})")
        return read_tensors(self.check(WEIGHTS), expected, integers, tables, memory_mapped)


@dataclass(frozen=True)
class ModelFolder:
    """What a network's folder says of its model; the numbers are read by `tensors`."""

    files: ModelFiles
    tokenizer: str
    vocabulary: Vocabulary
    graph: GraphConfig | None  # None: the network reads words in their order
    labels: Labels
    transformer: Transformer | None = None  # that features of nodes come from; None: they are word vectors

    @property
    def path(self) -> Path:
        """Where it is."""
        return self.files.path

    @property
    def kind(self) -> str:
        """Which network it is."""
        return self.files.kind

    def mpad_config(self) -> MPADConfig:
        """The shape of MPAD; of another network it says so."""
        if self.kind != "mpad":
            raise StoreError(f"{self.path}: the model is a '{self.kind}', not an 'mpad': mpad.paper.zoo.load reads it")
        network = network_settings(self.files.config.get("network"), self.files.config["format"])
        self.files.config["network"] = network
        return self.network(MPADConfig)

    def network(self, kind: type[Value]) -> Value:
        """The network's shape, which fits the vocabulary and the classes."""
        config = self.files.settings("network", kind)
        fitting = {"n_words": self.vocabulary.n_rows if self.transformer is None else 0, "n_classes": len(self.labels)}
        for name, needed in fitting.items():
            if getattr(config, name) != needed:
                file = VOCABULARY if name == "n_words" else CONFIG
                raise ShapeMismatch(
                    f"{self.path / file}: asks for {name} = {needed:,}, but the network says "
                    f"{getattr(config, name):,}: the files are not of one model"
                )
        return config

    def tensors(self, expected: Shapes, memory_mapped: bool = False) -> Arrays:
        """Read all tensors, the word vectors among them."""
        version = self.files.config["format"] if self.kind == "mpad" else FORMAT
        shape = self._potential_shape()
        if shape is not None:
            expected = {**expected, **shape.tensor_shapes(len(self.labels), self.labels.n_scores)}
        known = [name for name in TABLES if name in expected]
        tables = int8.listed(self.files.config.get("int8", []), known, lambda said: self.files.damaged(CONFIG, said))
        expected = int8.with_scales(expected, tables)
        named = {name: tensor_name(name, version) for name in expected}
        wanted = {named[name]: shape for name, shape in expected.items()}
        read = self.files.tensors(wanted, integers=INTEGERS, tables=set(tables), memory_mapped=memory_mapped)
        result = int8.restored({name: read[old] for name, old in named.items()}, tables)
        for name in tables:
            check_finite(self.path / WEIGHTS, name, result[name])
        return result

    def _potential_shape(self) -> PotentialShape | None:
        """How many words and pairs have a potential; None where the model has no linear part."""
        if self.kind != "mpad" or "potentials" not in self.files.config:
            return None
        shape = self.files.settings("potentials", PotentialShape)
        width = self.files.config["network"].get("vector_width")
        if shape.words > len(self.vocabulary) or shape.width not in (0, width):
            raise ShapeMismatch(f"{self.path / CONFIG}: the potentials are not of this vocabulary, or of these vectors")
        return shape

    def potentials(self, tensors: Arrays) -> Potentials | None:
        """Take the linear part out of the tensors, if there is one."""
        try:
            return Potentials.from_tensors(tensors, tensors[VECTORS])
        except InputError as error:
            raise self.files.damaged(WEIGHTS, str(error)) from None


def open_model(folder: str | Path, read: Callable[[ModelFiles], Value]) -> Value:
    """Open a folder and read from it; if another has taken its place meanwhile, read that one instead."""
    path = Path(folder)
    for _ in range(100):
        before = _identity(path)
        try:
            return read(_open(path))
        except StoreError:
            if _identity(path) == before:
                raise
    raise StoreError(f"{path}: is being written again and again; read it later")


def _identity(folder: Path) -> tuple[int, int] | None:
    try:
        stat = folder.stat()
    except OSError:
        return None
    return stat.st_ino, stat.st_ctime_ns


def _open(path: Path) -> ModelFiles:
    config, sums = _read_config(path), read_sums(path)
    if sums is None and config["format"] > 1:
        raise MissingModelFile(f"{path / SUMS}: no such file: {path} is not a whole model")
    ModelFiles(path, config, sums).check(CONFIG)
    return ModelFiles(path, config, sums)


def read_network(files: ModelFiles) -> ModelFolder:
    """Read all that is common to networks, but the numbers."""
    config, words = files.config, files.words()
    for name, kind in (("tokenizer", str), ("words_seen", int)):
        if type(config.get(name)) is not kind:
            raise files.damaged(CONFIG, f"'{name}' is missing, or is not what it should be")
    if not 0 <= config["words_seen"] <= len(words):
        said = f"{config['words_seen']:,} of {len(words):,} words were seen"
        raise ShapeMismatch(f"{files.path / VOCABULARY}: {said}: the files are not of one model")
    graph = files.settings("graph", GraphConfig) if "graph" in config else None
    if (graph is None) != (files.kind != "mpad"):
        raise files.damaged(CONFIG, f"'graph' goes with 'mpad' alone; this is a '{files.kind}'")
    vocabulary = Vocabulary(words, seen=config["words_seen"])
    files.estimator(), files.card()  # a folder is right or wrong as a whole, whoever reads it
    transformer = files.settings("features", Transformer) if "features" in config and graph is not None else None
    return ModelFolder(files, config["tokenizer"], vocabulary, graph, files.labels(), transformer)


def read_kind(folder: str | Path) -> str:
    """Which model a folder holds, by its name in the zoo."""
    return open_model(folder, lambda files: files.kind)


def _read_config(folder: Path) -> dict[str, Any]:
    if not folder.is_dir():
        raise MissingModelFile(f"{folder}: no such folder; expected one that save() or 'mpad fit --out' wrote")
    path = folder / CONFIG
    config = read_json(read_small(path), lambda said: DamagedModel(f"{path}: not valid JSON: {said}"))
    if not isinstance(config, dict) or type(config.get("format")) is not int or not {"mpad", "labels"} <= set(config):
        raise DamagedModel(f"{path}: expected an object with a format version; this is no mpad model")
    if config["format"] > FORMAT:
        raise FutureFormat(
            f"{folder}: written in format {config['format']} by mpad {config['mpad']}; this version reads up to "
            f"format {FORMAT}: install the newer mpad"
        )
    return config
