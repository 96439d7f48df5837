"""Model folders: write them, and read them with checks, without torch.

config.json         everything except tensors: format version, network, graph, tokenizer, labels, estimator, model card
vocabulary.json     the words, in the order of their ids
model.safetensors   the weights and the word vectors (float16 if they were not trained; 8 bits if exported so)
SHA256SUMS          the checksums of the files, in the format of `sha256sum --check`

A folder is untrusted data. Nothing that it names is imported. Types and ranges of all values, and names, shapes, types
and finiteness of all tensors are checked before anything is computed. Checksums detect damage, not malice.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
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
from mpad.files.safe_json import as_settings, read_json
from mpad.files.tensors import Arrays, Expected, check_finite, read_tensors
from mpad.graph.build import GraphConfig
from mpad.linear.potentials import INTEGERS, PREFIX, Potentials, PotentialShape
from mpad.registry import find_kind
from mpad.storage.model_formats import FORMAT, network_settings, tensor_name
from mpad.text.contextual import Transformer
from mpad.text.tokenizer import DOCUMENT_END, SENTENCE_END
from mpad.text.vocabulary import Vocabulary

CONFIG, VOCABULARY, WEIGHTS, SUMS = "config.json", "vocabulary.json", "model.safetensors", "SHA256SUMS"
FILES = (CONFIG, VOCABULARY, WEIGHTS, SUMS)  # of a network's folder
_FIRST = frozenset({CONFIG, VOCABULARY, WEIGHTS})  # the files of a folder of format 1
VECTORS = "vectors"  # name of the tensor that holds the word vectors
_LARGEST = 64 << 20  # bytes of a file that is read into memory
TABLES = [VECTORS, PREFIX + "potential"]  # tensors that may be stored in 8 bits, with a scale per row
_LARGEST_BYTE = 127
SCALES = ".scales"  # suffix of the name of a table's scales
Value = TypeVar("Value")


# ── Writing ──


@contextmanager
def new_folder(folder: str | Path, config: Mapping[str, Any]) -> Iterator[Path]:
    """Yield a folder for a model's other files; then add configuration and checksums, and move it into place."""
    with atomic.write_folder(Path(folder), our_files) as fresh:
        yield fresh
        write_json(fresh / CONFIG, config, indent=2)
        sums = {file.name: digest(file) for file in fresh.iterdir()}
        lines = [f"{sums[name]}  {name}\n" for name in sorted(sums)]
        (fresh / SUMS).write_text("".join(lines), encoding="utf-8")


def write_json(file: Path, value: Any, indent: int | None = None) -> None:
    """Write a value as a JSON file."""
    file.write_text(json.dumps(value, indent=indent) + "\n", encoding="utf-8")


def write_tensors(folder: Path, tensors: Mapping[str, NDArray[Any]]) -> None:
    """Write a model's tensors."""
    (folder / WEIGHTS).write_bytes(save({name: np.asarray(value, order="C") for name, value in tensors.items()}))


def model_card(documents: int, **facts: Any) -> dict[str, Any]:
    """Build the card of a training that ends now, which `mpad info` shows; facts that are None are left out."""
    trained = {"trained": datetime.now(UTC).isoformat(timespec="seconds"), "documents": documents}
    return {**trained, **{name: value for name, value in facts.items() if value is not None}}


def our_files(folder: Path) -> Set[str] | None:
    """Return the names that a model folder may hold; None if the folder is not a model."""
    try:
        config, sums = _read_config(folder), read_sums(folder)
    except StoreError:  # no model, or one of a newer version with unknown files
        return None
    if sums is not None:
        return {*sums, SUMS}
    return _FIRST | {"model.bin"} if config.get("kind") == "fasttext" else _FIRST


def check_destination(folder: str | Path) -> None:
    """Raise, before training, if a model cannot be written here or the folder holds anything else."""
    atomic.check_destination(Path(folder), our_files)


# ── Reading ──


def read_sums(folder: Path) -> dict[str, str] | None:
    """Return the checksum of each file by its name; None if the folder has no checksums."""
    path = folder / SUMS
    if not path.exists():
        return None
    lines = read_small(path).decode("utf-8", "replace").splitlines()
    result = [re.fullmatch(r"([0-9a-f]{64})  ([\w.-]+)", line) for line in lines]
    if None in result or not result:
        raise DamagedModel(f"{path}: expected a checksum and a name per line")
    return {match[2]: match[1] for match in result if match is not None}


def read_small(file: Path) -> bytes:
    """Read a small regular file; pipes and devices, which may never end, are rejected."""
    if not file.is_file():
        raise MissingModelFile(f"{file}: no such file: {file.parent} is not a model, or is incomplete")
    if file.stat().st_size > _LARGEST:
        raise DamagedModel(f"{file}: has {file.stat().st_size:,} bytes, more than any that mpad writes")
    return file.read_bytes()


def digest(file: Path) -> str:
    """Return the SHA-256 checksum of a file."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


_HEADER = 1 << 20  # upper bound of the safetensors header, in bytes


@dataclass(frozen=True)
class ModelFiles:
    """The files of a folder; each is compared with its checksum when it is read."""

    path: Path
    config: dict[str, Any]
    sums: Mapping[str, str] | None  # None for folders of format 1

    @property
    def kind(self) -> str:
        """Registry kind of the model."""
        return str(self.config.get("kind", "mpad"))

    def damaged(self, name: str, reason: str) -> DamagedModel:
        """Return the error for a damaged file."""
        return DamagedModel(f"{self.path / name}: {reason}")

    def check(self, name: str) -> Path:
        """Compare a file with its checksum and return its path."""
        file = self.path / name
        if not file.is_file():
            raise MissingModelFile(f"{file}: no such file: {self.path} is not a model, or is incomplete")
        if self.sums is not None and self.sums.get(name) != digest(file):
            raise self.damaged(name, f"not as it was saved: its checksum differs from that in {SUMS}")
        return file

    def read_json(self, name: str) -> Any:
        """Read a JSON file."""
        data = self.check(name).read_bytes()
        return read_json(data, lambda reason: self.damaged(name, f"not valid JSON: {reason}"))

    def words(self) -> list[str]:
        """Read the vocabulary."""
        words = self.read_json(VOCABULARY)
        if not isinstance(words, list) or set(map(type, words)) - {str}:
            raise self.damaged(VOCABULARY, "expected a list of words")
        if len(set(words)) < len(words):
            raise self.damaged(VOCABULARY, "a word is listed twice")
        letters = "".join(words)
        if DOCUMENT_END in letters or SENTENCE_END in letters:
            raise self.damaged(VOCABULARY, "a word holds a control character that no tokenizer gives")
        return words

    def labels(self) -> Labels:
        """Read the classes."""
        return self._parse("labels", Labels.from_json)

    def estimator(self) -> dict[str, Any]:
        """Read the estimator's parameters."""
        return self._parse("estimator", dict)

    def card(self) -> dict[str, Any]:
        """Read the model card; empty for folders of format 1."""
        return self._parse("card", dict) if "card" in self.config else {}

    def _parse(self, name: str, parse: Callable[[Any], Value]) -> Value:
        if not isinstance(self.config.get(name), dict):
            raise self.damaged(CONFIG, f"'{name}' is missing, or is not what it should be")
        try:
            return parse(self.config[name])
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise self.damaged(CONFIG, f"'{name}': {type(error).__name__}: {error}") from None

    def settings(self, name: str, kind: type[Value]) -> Value:
        """Read a section of the configuration as a dataclass, with types and ranges checked."""
        return as_settings(kind, self.config.get(name), lambda reason: self.damaged(CONFIG, f"'{name}': {reason}"))

    def tensors(
        self,
        expected: Expected,
        integers: Set[str] = frozenset(),
        tables: Set[str] = frozenset(),
        memory_mapped: bool = False,
    ) -> Arrays:
        """Read all tensors, which must be exactly the expected ones; `tables` are 8-bit."""
        file = self.path / WEIGHTS
        known = all(n is not None for shape in expected.values() for n in shape)
        most = 8 * sum(prod(n or 0 for n in shape) for shape in expected.values()) + _HEADER
        if known and file.is_file() and file.stat().st_size > most:  # before the slow checksum
            raise self.damaged(WEIGHTS, f"has {file.stat().st_size:,} bytes, more than its tensors can take ({most:,})")
        return read_tensors(self.check(WEIGHTS), expected, integers, tables, memory_mapped)


@dataclass(frozen=True)
class ModelFolder:
    """Everything in a network's folder except the tensors, which `tensors` reads."""

    files: ModelFiles
    tokenizer: str
    vocabulary: Vocabulary
    graph: GraphConfig | None  # None: the network reads sequences
    labels: Labels
    transformer: Transformer | None = None  # source of node features; None: word vectors

    @property
    def kind(self) -> str:
        """Registry kind of the network."""
        return self.files.kind

    def mpad_config(self) -> MPADConfig:
        """Return the MPAD configuration; raise if the folder holds another model."""
        if self.kind != "mpad":
            raise StoreError(
                f"{self.files.path}: the model is a '{self.kind}', not an 'mpad': mpad.paper.zoo.load reads it"
            )
        network = network_settings(self.files.config.get("network"), self.files.config["format"])
        self.files.config["network"] = network
        return self.network(MPADConfig)

    def network(self, kind: type[Value]) -> Value:
        """Return the network's configuration, checked against vocabulary and classes."""
        config = self.files.settings("network", kind)
        fitting = {"n_words": self.vocabulary.n_rows if self.transformer is None else 0, "n_classes": len(self.labels)}
        for name, needed in fitting.items():
            if getattr(config, name) != needed:
                file = VOCABULARY if name == "n_words" else CONFIG
                raise ShapeMismatch(
                    f"{self.files.path / file}: asks for {name} = {needed:,}, but the network says "
                    f"{getattr(config, name):,}: the files are not of one model"
                )
        return config

    def tensors(self, expected: Shapes, memory_mapped: bool = False) -> Arrays:
        """Read all tensors, word vectors included."""
        version = self.files.config["format"] if self.kind == "mpad" else FORMAT
        shape = self._potential_shape()
        if shape is not None:
            expected = {**expected, **shape.tensor_shapes(len(self.labels), self.labels.n_scores)}
        known, tables = [name for name in TABLES if name in expected], self.files.config.get("int8", [])
        if not isinstance(tables, list) or [name for name in known if name in tables] != tables:
            raise self.files.damaged(CONFIG, f"'int8': expected some of {', '.join(known)}, in that order")
        expected = {**expected, **{name + SCALES: expected[name][:1] for name in tables}}
        named = {name: tensor_name(name, version) for name in expected}
        wanted = {named[name]: shape for name, shape in expected.items()}
        read = self.files.tensors(wanted, integers=INTEGERS, tables=set(tables), memory_mapped=memory_mapped)
        result = {name: read[old] for name, old in named.items()}
        for name in tables:
            result[name] = dequantize(result[name], result.pop(name + SCALES))
            check_finite(self.files.path / WEIGHTS, name, result[name])
        return result

    def _potential_shape(self) -> PotentialShape | None:
        """Return the numbers of words and pairs with a potential; None without a linear part."""
        if self.kind != "mpad" or "potentials" not in self.files.config:
            return None
        shape = self.files.settings("potentials", PotentialShape)
        width = self.files.config["network"].get("vector_width")
        if shape.words > len(self.vocabulary) or shape.width not in (0, width):
            raise ShapeMismatch(
                f"{self.files.path / CONFIG}: the potentials are not of this vocabulary, or of these vectors"
            )
        return shape

    def potentials(self, tensors: Arrays) -> Potentials | None:
        """Remove the linear part from the tensors and return it, if there is one."""
        try:
            return Potentials.from_tensors(tensors, tensors[VECTORS])
        except InputError as error:
            raise self.files.damaged(WEIGHTS, str(error)) from None


def quantize(table: NDArray[Any]) -> tuple[NDArray[np.int8], NDArray[Any]]:
    """Return the 8-bit numbers of a table, and a scale per row, of the type of the table."""
    exact = table.astype(np.float32)
    scales = (np.abs(exact).max(axis=1, initial=0) / _LARGEST_BYTE).astype(table.dtype)
    divisor = np.maximum(scales.astype(np.float32), np.finfo(np.float32).tiny)  # any divisor serves a row of zeros
    numbers = np.rint(exact / divisor[:, None]).clip(-_LARGEST_BYTE, _LARGEST_BYTE)
    return numbers.astype(np.int8), scales


def dequantize(numbers: NDArray[np.int8], scales: NDArray[Any]) -> NDArray[Any]:
    """Return an 8-bit table as floats, of the type of its scales: x ≈ scale · n."""
    with np.errstate(over="ignore"):  # the caller checks that the result is finite
        return (numbers * scales.astype(np.float32)[:, None]).astype(scales.dtype)


def open_model(folder: str | Path, read: Callable[[ModelFiles], Value]) -> Value:
    """Open a folder and read from it; start again if another folder replaces it meanwhile."""
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
        raise MissingModelFile(f"{path / SUMS}: no such file: {path} is not a complete model")
    files = ModelFiles(path, config, sums)
    files.check(CONFIG)
    return files


def read_network(files: ModelFiles) -> ModelFolder:
    """Read everything common to networks except the tensors."""
    entry = find_kind(files.kind)
    if entry is not None and not entry.is_network:
        raise StoreError(f"{files.path}: a '{files.kind}' is not a network; it can only predict and be evaluated")
    config, words = files.config, files.words()
    for name, kind in (("tokenizer", str), ("words_seen", int)):
        if type(config.get(name)) is not kind:
            raise files.damaged(CONFIG, f"'{name}' is missing, or is not what it should be")
    if not 0 <= config["words_seen"] <= len(words):
        seen = f"{config['words_seen']:,} of {len(words):,} words were seen"
        raise ShapeMismatch(f"{files.path / VOCABULARY}: {seen}: the files are not of one model")
    graph = files.settings("graph", GraphConfig) if "graph" in config else None
    if (graph is None) != (files.kind != "mpad"):
        raise files.damaged(CONFIG, f"'graph' goes with 'mpad' only; this is a '{files.kind}'")
    vocabulary = Vocabulary(words, seen=config["words_seen"])
    files.estimator(), files.card()  # a damaged folder fails for every reader
    transformer = files.settings("features", Transformer) if "features" in config and graph is not None else None
    return ModelFolder(files, config["tokenizer"], vocabulary, graph, files.labels(), transformer)


def read_kind(folder: str | Path) -> str:
    """Return the registry kind of a folder's model."""
    return open_model(folder, lambda files: files.kind)


def _read_config(folder: Path) -> dict[str, Any]:
    if not folder.is_dir():
        raise MissingModelFile(f"{folder}: no such folder; expected one that save() or 'mpad fit --out' wrote")
    path = folder / CONFIG
    config = read_json(read_small(path), lambda reason: DamagedModel(f"{path}: not valid JSON: {reason}"))
    if not isinstance(config, dict) or type(config.get("format")) is not int or "mpad" not in config:
        raise DamagedModel(f"{path}: expected an object with a format version; this is no mpad model")
    if config["format"] > FORMAT:
        raise FutureFormat(
            f"{folder}: written in format {config['format']} by mpad {config['mpad']}; this version reads up to "
            f"format {FORMAT}: install the newer mpad"
        )
    return config


def as_json(value: Any) -> Any:
    """Return a constructor argument as a JSON value; anything else (a random generator) becomes None."""
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    if isinstance(value, (list, tuple)):
        return [as_json(item) for item in value]
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {str(key): as_json(item) for key, item in value.items()}
    return getattr(value, "name", None)
