"""A corpus on disk: text → shards of packed graphs → the shuffled windows of documents that each step reads.

Two passes over the text, by worker processes, write the shards:

1. The words of the corpus and how often each occurs, its labels, its number of documents.
2. With the vocabulary of the first pass: packed graphs and targets, in shards.

The result of each pass over a piece of the corpus is kept in a folder, under a digest of the piece's content and of
everything else that it depends on. An interrupted pass resumes with the missing pieces.

Training reads shards in lanes. Each epoch deals the shards out to the lanes again; a lane reads a window of its shards
at a time, shuffles the documents within it and contributes its share of each batch. A process reads one lane or
several: two processes of one lane each see the same batches as one process of two lanes.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from functools import cached_property
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from mpad.data.equal_texts import text_hashes
from mpad.data.inputs import as_labels
from mpad.data.labels import Labels
from mpad.data.readers import as_numbers
from mpad.data.streams import Chunk, Piece
from mpad.errors import DataFileError, InputError
from mpad.files.atomic import write_file
from mpad.files.cache import cache_folder
from mpad.graph.build import GraphConfig, build_graphs
from mpad.graph.packed import PackedGraphs, concatenate, take_documents
from mpad.inference.fused import cores
from mpad.text.tokenizer import Tokenizer
from mpad.text.vocabulary import Vocabulary, learn_vocabulary
from mpad.training.progress import with_bar

Rows = NDArray[np.int64]
_FORMAT = 3  # raised if the meaning of shards or counts changes
_MOST_COUNTED = 1_000_000  # words that are remembered while counting; beyond, the rarest are forgotten
MOST_WORDS = 200_000  # words that the vocabulary keeps
_ORDER, _DEAL = 2, 3  # streams of random numbers
_HASHES = "text_hashes"
_TYPES = {
    "words": np.int32,
    "node_start": np.int64,
    "source": np.int32,
    "target": np.int32,
    "weight": np.float32,
    "edge_start": np.int64,
    "document_start": np.int64,
    "count": np.int32,
}  # in memory


def _cache() -> Path:
    return cache_folder() / "streams"


@dataclass(frozen=True)
class StreamOptions:
    """Cache folder, number of processes, and reading order of a streamed corpus.

    Parameters
    ----------
    cache : path, optional
        Folder for packed graphs, about twice as large as the text; it can be removed at any time. Of several machines,
        one that all see.
    workers : int from 1, optional
        Processes that turn text into packed graphs; by default one per core.
    lanes : int, optional
        Streams of documents that each batch is made of; by default one for each training process.
    epoch_documents : int from 1, optional
        Maximal number of documents per epoch; by default all.
    most_held : int, default=20000
        Maximal number of held-out documents.
    window : int, default=32768
        Documents in memory at a time, of each lane.

    """

    cache: Path = field(default_factory=_cache)
    workers: int = field(default_factory=cores)
    lanes: int | None = None
    epoch_documents: int | None = None
    most_held: int = 20_000
    window: int = 32_768

    def __post_init__(self) -> None:
        object.__setattr__(self, "cache", Path(self.cache))

    def lanes_of(self, processes: int) -> int:
        """Return the number of lanes for a number of processes."""
        lanes = processes if self.lanes is None else self.lanes
        if lanes < 1 or lanes % processes:
            raise InputError(f"lanes must be a multiple of the {processes} processes that train, not {lanes}")
        return lanes


# ── Shards ──


@dataclass(frozen=True)
class Shard:
    """Some documents of a corpus in a file."""

    path: Path
    documents: int


def write_shard(path: Path, graphs: PackedGraphs, targets: NDArray[Any], hashes: NDArray[np.uint64]) -> Shard:
    """Write documents, their targets and the hashes of their texts (`text_hashes`)."""
    arrays = {name: _narrowed(getattr(graphs, name)) for name in _TYPES if getattr(graphs, name) is not None}
    arrays |= {"targets": np.ascontiguousarray(targets), _HASHES: hashes.view(np.int64)}
    write_file(path, save(arrays, {"documents": str(len(targets))}), private=True)
    return Shard(path, len(targets))


def _narrowed(array: NDArray[Any]) -> NDArray[Any]:
    """Return the numbers in one or two bytes each if they fit; most graphs have few nodes and small counts."""
    highest = array.max(initial=0)
    for kind in (np.uint8, np.uint16):
        if highest <= np.iinfo(kind).max and array.min(initial=0) >= 0:
            narrow = array.astype(kind)
            if (narrow == array).all():  # weights of distant words are no whole numbers
                return narrow
    return np.ascontiguousarray(array)


def read_shard(shard: Shard) -> tuple[PackedGraphs, NDArray[Any]]:
    """Return documents and their targets."""
    arrays = _read_arrays(shard, lambda name: name != _HASHES)
    try:
        targets = arrays.pop("targets")
        graphs = PackedGraphs(**{name: array.astype(_TYPES[name], copy=False) for name, array in arrays.items()})
    except (KeyError, TypeError) as error:
        raise _unreadable(shard, error) from None
    if not len(graphs) == len(targets) == shard.documents:
        raise _unreadable(shard, f"expected {shard.documents:,} documents")
    return graphs, targets


def read_hashes(shard: Shard) -> NDArray[np.uint64]:
    """Read the hashes of the documents' texts, equal for equal texts: (documents,)."""
    arrays = _read_arrays(shard, lambda name: name == _HASHES)
    if _HASHES not in arrays or arrays[_HASHES].shape != (shard.documents,):
        raise _unreadable(shard, f"expected {shard.documents:,} documents")
    hashes: NDArray[np.uint64] = arrays[_HASHES].view(np.uint64)
    return hashes


def _read_arrays(shard: Shard, wanted: Callable[[str], bool]) -> dict[str, Any]:
    try:
        with safe_open(shard.path, framework="numpy") as file:
            return {name: file.get_tensor(name) for name in file.keys() if wanted(name)}  # noqa: SIM118, no dict
    except (SafetensorError, OSError) as error:
        raise _unreadable(shard, error) from None


def _unreadable(shard: Shard, reason: object) -> DataFileError:
    return DataFileError(f"{shard.path}: a shard that cannot be read ({reason}); remove it, and begin again")


def read_shards(shards: Sequence[Shard]) -> tuple[PackedGraphs, NDArray[Any]]:
    """Read several shards, one after another."""
    parts = [read_shard(shard) for shard in shards]
    return concatenate([graphs for graphs, _ in parts]), np.concatenate([targets for _, targets in parts])


def write_list(path: Path, shards: Sequence[Shard]) -> None:
    """Record the shards of a piece of a corpus, once all of them are written."""
    write_file(path, json.dumps([[shard.path.name, shard.documents] for shard in shards]).encode(), private=True)


def read_list(path: Path) -> list[Shard] | None:
    """Return the shards of a piece; None if some are missing."""
    try:
        listed = [Shard(path.with_name(str(name)), int(n)) for name, n in json.loads(path.read_bytes())]
    except (OSError, ValueError, TypeError):
        return None
    return listed if all(shard.path.is_file() for shard in listed) else None


# ── Two passes over the text ──


@dataclass(frozen=True)
class Counts:
    """Counts of the first pass over a corpus, or over a piece of it."""

    documents: int
    words: Counter[str]
    labels: Counter[Any]  # each label, once a document
    multilabel: bool


@dataclass(frozen=True)
class Reading:
    """Settings that turn texts into packed graphs and targets."""

    tokenizer: Tokenizer
    sentences: bool
    graph: GraphConfig
    vocabulary: Vocabulary
    labels: Labels
    shard_size: int  # documents

    def digest(self) -> str:
        """Return a digest of everything that a shard depends on except its piece."""
        facts = [_FORMAT, self.tokenizer.name, self.sentences, asdict(self.graph), self.shard_size]
        held = hashlib.blake2b(json.dumps([*facts, self.labels.to_json()], sort_keys=True).encode(), digest_size=16)
        held.update("\n".join(self.vocabulary.words).encode("utf-8", "surrogatepass"))
        return held.hexdigest()

    def read(self, chunk: Chunk) -> tuple[PackedGraphs, NDArray[Any], NDArray[np.uint64]]:
        """Return documents as the network reads them, their targets, and the hashes of their texts."""
        corpus = self.vocabulary.encode(chunk.texts, self.tokenizer, self.sentences, compose=False)
        labels: Any = [tuple(label) for label in chunk.labels] if self.labels.multilabel else chunk.labels
        y = np.empty(len(labels), object) if self.labels.multilabel else np.array(labels, self.labels.classes.dtype)
        if self.labels.multilabel:
            y[:] = labels
        return build_graphs(corpus, self.graph), self.labels.encode(y), text_hashes(chunk.texts)


def count_corpus(
    pieces: Sequence[Piece], tokenizer: Tokenizer, folder: Path, workers: int, shown: bool = False
) -> Counts:
    """Pass over a corpus for its words and labels."""
    total = Counts(0, Counter(), Counter(), multilabel=False)
    counted = _by_workers(_count_piece, tokenizer, [(piece, folder) for piece in pieces], workers)
    for own in with_bar(counted, "pieces counted", len(pieces), shown):
        total = _added(total, own)
    return total


def corpus_labels(counts: Counts) -> Labels:
    """Return the classes of a corpus."""
    known = as_numbers(as_labels(list(counts.labels)).tolist() if counts.labels else [])
    if len(known) < 2:
        raise InputError(
            f"a classifier needs at least two classes; the corpus has {', '.join(map(str, known)) or 'none'}"
        )
    return Labels(np.array(sorted(map(str, known) if counts.multilabel else known)), counts.multilabel)


def corpus_vocabulary(counts: Counts, min_count: int) -> Vocabulary:
    """Return the vocabulary of a corpus: its most frequent words, ties in alphabetical order."""
    frequent = [(word, n) for word, n in counts.words.items() if n >= min_count]
    frequent.sort(key=lambda pair: (-pair[1], pair[0]))
    words = [word for word, _ in frequent[:MOST_WORDS]]
    return Vocabulary(words, seen=len(words))


def build_shards(
    pieces: Sequence[Piece], reading: Reading, folder: Path, workers: int, shown: bool = False
) -> list[Shard]:
    """Pass over a corpus for its packed graphs: shards in the order of the pieces."""
    key = reading.digest()
    lists = [folder / f"{piece.digest()}-{key}.json" for piece in pieces]
    missing = [(piece, own) for piece, own in zip(pieces, lists, strict=True) if read_list(own) is None]
    for _ in with_bar(_by_workers(_build_piece, reading, missing, workers), "pieces packed", len(missing), shown):
        pass
    result = [read_list(own) for own in lists]
    return [shard for shards in result if shards is not None for shard in shards]


def _by_workers(function: Callable[[Any, Any], Any], context: Any, tasks: Sequence[Any], workers: int) -> Iterator[Any]:
    """Yield the results of function(context, task) as they are ready, by this process or by several.

    `context` holds a vocabulary, too large to be sent with every task: each process gets it once.
    """
    if workers <= 1 or len(tasks) <= 1:
        yield from (function(context, task) for task in tasks)
        return
    spawn = get_context("spawn")
    with ProcessPoolExecutor(min(workers, len(tasks)), spawn, _begin, (function, context)) as pool:
        futures = [pool.submit(_work, task) for task in tasks]
        try:
            for future in as_completed(futures):
                yield future.result()
        finally:
            for future in futures:
                future.cancel()


_own: list[Any] = []  # of a worker process: its function and context


def _begin(function: Callable[[Any, Any], Any], context: Any) -> None:
    _own[:] = [function, context]


def _work(task: Any) -> Any:
    function, context = _own
    return function(context, task)


def _count_piece(tokenizer: Tokenizer, task: tuple[Piece, Path]) -> Counts:
    piece, folder = task
    kept = folder / f"{piece.digest()}-{tokenizer.name.replace('/', '_')[:40]}-{_FORMAT}.counts"
    try:
        documents, words, labels, multilabel = json.loads(kept.read_bytes())
        return Counts(documents, Counter(dict(words)), Counter({label: n for label, n in labels}), multilabel)
    except (OSError, ValueError, TypeError):
        pass
    total = Counts(0, Counter(), Counter(), multilabel=False)
    for chunk in piece.chunks():
        total = _added(total, _counted(chunk, tokenizer))
    facts = [total.documents, list(total.words.items()), list(total.labels.items()), total.multilabel]
    write_file(kept, json.dumps(facts).encode(), private=True)
    return total


def _counted(chunk: Chunk, tokenizer: Tokenizer) -> Counts:
    vocabulary, corpus = learn_vocabulary(chunk.texts, tokenizer)
    words = Counter(dict(zip(vocabulary.words, np.bincount(corpus.ids, minlength=1).tolist(), strict=False)))
    multilabel = any(isinstance(label, list) for label in chunk.labels)
    labels = [one for label in chunk.labels for one in (label if isinstance(label, list) else [label])]
    return Counts(len(chunk.texts), words, Counter(labels), multilabel)


def _added(total: Counts, more: Counts) -> Counts:
    words, labels = total.words, total.labels
    words.update(more.words)
    labels.update(more.labels)
    if len(words) > 2 * _MOST_COUNTED:
        words = Counter(dict(words.most_common(_MOST_COUNTED)))
    return Counts(total.documents + more.documents, words, labels, total.multilabel or more.multilabel)


def _build_piece(reading: Reading, task: tuple[Piece, Path]) -> None:
    piece, listed = task
    shards: list[Shard] = []
    held: list[tuple[PackedGraphs, NDArray[Any], NDArray[np.uint64]]] = []

    def write() -> None:
        path = listed.with_suffix(f".{len(shards):05d}.safetensors")
        graphs, targets, hashes = zip(*held, strict=True)
        shards.append(write_shard(path, concatenate(list(graphs)), np.concatenate(targets), np.concatenate(hashes)))
        held.clear()

    for chunk in piece.chunks():
        for start in range(0, len(chunk.texts), reading.shard_size):
            part = slice(start, start + reading.shard_size)
            held.append(reading.read(Chunk(chunk.texts[part], chunk.labels[part])))
            if sum(len(targets) for _, targets, _ in held) >= reading.shard_size:
                write()
    if held:
        write()
    write_list(listed, shards)


# ── Windows ──


@dataclass(frozen=True)
class Window:
    """Documents in memory, and the batches that they make up."""

    graphs: PackedGraphs
    targets: NDArray[Any]
    batches: list[Rows]  # rows of this window, one array per step
    before: list[int]  # documents of each step's whole batch that earlier lanes hold
    documents: int  # trained on, in all lanes together


@dataclass(frozen=True)
class ShardedCorpus:
    """A corpus on disk, a part of it held out."""

    shards: Sequence[Shard]
    held_out: float  # share of documents
    seed: int
    lanes: int = 1
    window: int = 32_768  # documents of a lane that are in memory together

    def held(self, number: int) -> NDArray[np.bool_]:
        """Return which documents of a shard are held out: (documents,). Equal texts, in any shard, share their fate."""
        return np.asarray(_uniform(self._hashes[number], self.seed) < self.held_out)

    @cached_property
    def _hashes(self) -> list[NDArray[np.uint64]]:
        return [read_hashes(shard) for shard in self.shards]

    @property
    def copies(self) -> int:
        """Count documents whose text appeared in an earlier one."""
        hashes = np.concatenate(self._hashes) if self.shards else np.zeros(0, np.uint64)
        return len(hashes) - len(np.unique(hashes))

    def held_out_documents(self) -> tuple[PackedGraphs, NDArray[Any]]:
        """Return all held-out documents."""
        graphs, targets = [], []
        for number, shard in enumerate(self.shards):
            chosen = np.flatnonzero(self.held(number))
            if len(chosen):
                packed, truth = read_shard(shard)
                graphs.append(take_documents(packed, chosen))
                targets.append(truth[chosen])
        if not graphs:
            packed, truth = read_shard(self.shards[0])
            return take_documents(packed, np.zeros(0, np.int64)), truth[:0]
        return concatenate(graphs), np.concatenate(targets)

    def rounds(self, epoch: int) -> int:
        """Return the number of windows of an epoch."""
        return max(len(deal) for deal in self._deal(epoch))

    def windows(self, epoch: int, batch_size: int, mine: Sequence[int], most: int | None = None) -> Iterator[Window]:
        """Yield the windows of an epoch for the lanes `mine`, in order; `most` limits the documents of all lanes."""
        deals = self._deal(epoch)
        seen = 0
        for turn in range(self.rounds(epoch)):
            groups = [deal[turn] if turn < len(deal) else [] for deal in deals]
            rows = [self._rows(group, epoch, turn, lane) for lane, group in enumerate(groups)]
            counts = [len(own) for own in rows]
            share = max(1, batch_size // self.lanes)
            if min(counts) == 0:
                return  # a lane has run out: what the others have left comes in another epoch
            steps = min(max(-(-n // share) for n in counts), min(counts))  # every lane has a document in every step
            cut = [np.array_split(own, steps) for own in rows]
            graphs, targets = read_shards([self.shards[number] for lane in mine for number in groups[lane]])
            starts = np.cumsum([0, *[self._documents(groups[lane]) for lane in mine]])
            shift = dict(zip(mine, starts[:-1].tolist(), strict=True))
            batches = [np.concatenate([cut[lane][k] + shift[lane] for lane in mine]) for k in range(steps)]
            before = [sum(len(cut[lane][k]) for lane in range(min(mine))) for k in range(steps)]
            yield Window(graphs, targets, batches, before, sum(counts))
            seen += sum(counts)
            if most is not None and seen >= most:
                return

    def sample(self, most: int) -> tuple[PackedGraphs, Rows]:
        """Return documents of randomly drawn shards, and the rows of those to train on."""
        order = np.random.default_rng([self.seed, _DEAL]).permutation(len(self.shards)).tolist()
        total = np.cumsum([self.shards[number].documents for number in order])
        chosen = order[: 1 + int(np.searchsorted(total, most))]
        trained = ~np.concatenate([self.held(number) for number in chosen])
        return read_shards([self.shards[number] for number in chosen])[0], np.flatnonzero(trained)

    def _deal(self, epoch: int) -> list[list[list[int]]]:
        """Return the shards of each lane, grouped by window."""
        order = np.random.default_rng([self.seed, _DEAL, epoch % 2**32]).permutation(len(self.shards)).tolist()
        deals = []
        for lane in range(self.lanes):
            groups: list[list[int]] = [[]]
            for number in order[lane :: self.lanes]:
                if self._documents(groups[-1]) >= self.window:
                    groups.append([])
                groups[-1].append(number)
            deals.append(groups)
        return deals

    def _documents(self, group: Sequence[int]) -> int:
        return sum(self.shards[number].documents for number in group)

    def _rows(self, group: Sequence[int], epoch: int, turn: int, lane: int) -> Rows:
        """Return the training rows of a lane's window, shuffled."""
        if not group:
            return np.zeros(0, np.int64)
        trained = np.flatnonzero(~np.concatenate([self.held(number) for number in group]))
        return np.random.default_rng([self.seed, _ORDER, epoch % 2**32, turn, lane]).permutation(trained)


def read_ahead(windows: Iterator[Window]) -> Iterator[Window]:
    """Read the next window while the caller trains on this one."""
    with ThreadPoolExecutor(1) as reader:
        following = reader.submit(next, windows, None)
        while (window := following.result()) is not None:
            following = reader.submit(next, windows, None)
            yield window


def _uniform(hashes: NDArray[np.uint64], seed: int) -> NDArray[np.float64]:
    """Draw a number from 0 to 1 for each hash, always the same for one hash and seed (the finalizer of splitmix64)."""
    with np.errstate(over="ignore"):
        x = hashes + np.uint64(seed % 2**32 + 1) * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray((x ^ (x >> np.uint64(31))) / 2.0**64)
