"""A pretrained MPAD network in memory and on disk: it encodes texts, and fits start from its weights.

    config.json         network, graph, tokenizer, the teachers and the width of their vectors, and a card
    vocabulary.json     whole words, most frequent first, then pieces of words
    model.safetensors   word vectors in 8 bits with a scale per row, and weights in half precision
    SHA256SUMS          checksums

A folder is untrusted data, read with the checks of `mpad.storage.model_folder`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpad._version import __version__
from mpad.config import MPADConfig
from mpad.data.labels import Labels
from mpad.errors import InputError, ShapeMismatch, StoreError
from mpad.files.tensors import Arrays
from mpad.graph.build import GraphConfig
from mpad.inference.network import make_network
from mpad.inference.pipeline import Pipeline
from mpad.storage.model_folder import (
    CONFIG,
    SCALES,
    VECTORS,
    VOCABULARY,
    ModelFiles,
    dequantize,
    new_folder,
    open_model,
    quantize,
    write_json,
    write_tensors,
)
from mpad.storage.model_formats import FORMAT
from mpad.text.tokenizer import Tokenizer, saved_tokenizer
from mpad.text.vectors import WordVectors
from mpad.text.vocabulary import CONTINUED, SPARE_ROWS, Vocabulary, piece_means

AUTO, KIND = "auto", "encoder"
SHIPPED = Path(__file__).parent / "english"
_MOST_WIDTH = 1 << 14  # of a teacher's vectors


@dataclass(frozen=True)
class Encoder:
    """A network that imitates sentence encoders, with everything it needs to read text."""

    name: str
    tokenizer: Tokenizer
    vocabulary: Vocabulary
    graph_config: GraphConfig
    config: MPADConfig  # its classes are the numbers of the teachers' vectors, one teacher after another
    tensors: Arrays  # weights by name, and the word vectors
    outputs: Mapping[str, int]  # width of each teacher's vectors
    card: Mapping[str, Any]

    @cached_property
    def pipeline(self) -> Pipeline:
        """The encoder as a model whose logits are the teachers' vectors."""
        weights = {name: value for name, value in self.tensors.items() if name != VECTORS}
        network = make_network(self.config, weights, self.tensors[VECTORS])
        labels = Labels(np.arange(self.config.n_classes))
        return Pipeline(self.tokenizer, self.vocabulary, self.graph_config, network, labels, kind=KIND)

    @property
    def width(self) -> int:
        """Length of a text's vector."""
        return self.config.n_classes

    @property
    def sizes(self) -> dict[str, Any]:
        """Return the settings of the network that a network must share to start from its weights."""
        own = "n_classes", "vector_width", "n_words", "variant", "dropout", "learn_vectors", "members"
        return {name: value for name, value in asdict(self.config).items() if name not in own}

    def encode(self, texts: Iterable[str]) -> NDArray[np.float32]:
        """Return the vectors of texts, of length one: (texts, width). Each teacher's part has the same length."""
        logits = self.pipeline.logits(texts)
        ends = np.cumsum(list(self.outputs.values()))[:-1]
        parts = [normalize(part) for part in np.split(logits, ends, axis=1)]
        return np.concatenate(parts, axis=1) / np.float32(np.sqrt(len(parts)))

    def rows(self, words: Sequence[str]) -> NDArray[np.float32]:
        """Return the vector of each word, of a new word the mean of its pieces': (words, vector_width)."""
        own = [(number,) if (number := self._number(word)) is not None else self._pieces(word) for word in words]
        table = self.tensors[VECTORS]
        return piece_means(lambda ids: table[ids].astype(np.float32), own, table.shape[1])

    def _number(self, word: str) -> int | None:
        for form in (word, word.lower(), "\\" + word):  # Kim's tokenizer writes `?` as `\?`
            if form in self.vocabulary:
                return self.vocabulary.id(form)
        return None

    def _pieces(self, word: str) -> tuple[int, ...]:
        return self.vocabulary.pieces(word.lstrip("\\"))

    def knows(self, word: str) -> bool:
        """Return whether a word has a vector of its own."""
        return self._number(word) is not None

    def word_vectors(self, vocabulary: Vocabulary, extra: int) -> WordVectors:
        """Return the vectors of a vocabulary's words, and of up to `extra` other words and pieces for new documents."""
        first, rest = self.vocabulary.words[: self.vocabulary.seen], self.vocabulary.words[self.vocabulary.seen :]
        room = max(extra - len(rest), 0)  # pieces first: every new word is composed of them
        full = vocabulary.with_words([*rest[:extra], *first[:room]])
        rows = np.zeros((full.n_rows, self.config.vector_width), np.float32)
        rows[: len(full)] = self.rows(full.words)
        return WordVectors(full, rows, covered=sum(map(self.knows, vocabulary.words)))

    def save(self, folder: str | Path) -> None:
        """Write the encoder; an existing one is replaced atomically."""
        numbers, scales = quantize(self.tensors[VECTORS].astype(np.float16))
        halves = {name: _halved(value) for name, value in self.tensors.items() if name != VECTORS}
        config = {
            "format": FORMAT,
            "mpad": __version__,
            "kind": KIND,
            "tokenizer": self.tokenizer.name,
            "graph": asdict(self.graph_config),
            "network": asdict(self.config),
            "outputs": dict(self.outputs),
            "words_seen": self.vocabulary.seen,
            "card": dict(self.card),
        }
        with new_folder(folder, config) as fresh:
            write_json(fresh / VOCABULARY, list(self.vocabulary.words))
            write_tensors(fresh, {VECTORS: numbers, VECTORS + SCALES: scales, **halves})


def _halved(value: NDArray[Any]) -> NDArray[Any]:
    return value.astype(np.float16) if value.dtype.kind == "f" else value


def normalize(x: NDArray[np.floating]) -> NDArray[np.float32]:
    """Return rows of length one; rows of zeros stay."""
    return np.asarray(x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), np.finfo(np.float32).tiny), np.float32)


def load_encoder(name: str | Path) -> Encoder:
    """Load an encoder by its folder; "auto" is the one that ships with the package."""
    folder = SHIPPED if str(name) == AUTO else Path(name)
    if not (folder / CONFIG).is_file():
        raise InputError(f"no encoder '{name}': expected '{AUTO}', or a folder that 'mpad pretrain' wrote")
    return _load(str(name), folder.resolve(), (folder / CONFIG).stat().st_mtime_ns)


@cache
def _load(name: str, folder: Path, stamp: int) -> Encoder:
    return open_model(folder, lambda files: _read(name, files))


def _read(name: str, files: ModelFiles) -> Encoder:
    if files.kind != KIND:
        raise StoreError(
            f"{files.path}: is a model of kind '{files.kind}', not an encoder ('mpad pretrain' writes one)"
        )
    config, words = files.settings("network", MPADConfig), files.words()
    graph = files.settings("graph", GraphConfig)
    seen, tokenizer, outputs = (
        files.config.get("words_seen"),
        files.config.get("tokenizer"),
        files.config.get("outputs"),
    )
    if type(seen) is not int or not 0 <= seen <= len(words) or type(tokenizer) is not str:
        raise files.damaged(CONFIG, "'words_seen' or 'tokenizer' is not what it should be")
    if not isinstance(outputs, dict) or not all(type(n) is int and 0 < n <= _MOST_WIDTH for n in outputs.values()):
        raise files.damaged(CONFIG, "'outputs': expected the width of each teacher's vectors")
    vocabulary = Vocabulary(words, seen=seen)
    if config.n_words != vocabulary.n_rows or config.n_classes != sum(outputs.values()) or config.members != 1:
        raise ShapeMismatch(f"{files.path}: the network is not of this vocabulary, or not of these outputs")
    if not any(word.startswith(CONTINUED) for word in words):
        raise files.damaged(VOCABULARY, "has no pieces of words")
    shapes = {**config.tensor_shapes(), VECTORS + SCALES: (config.n_words,)}
    read = files.tensors(shapes, tables={VECTORS})
    table = dequantize(read.pop(VECTORS), read.pop(VECTORS + SCALES))
    table[-SPARE_ROWS:] = 0
    tensors = {key: value.astype(np.float32) if value.dtype == np.float16 else value for key, value in read.items()}
    config = replace(config, learn_vectors=False)
    chosen = saved_tokenizer(tokenizer, None)
    return Encoder(name, chosen, vocabulary, graph, config, {**tensors, VECTORS: table}, outputs, files.card())
