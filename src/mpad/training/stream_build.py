"""Text → shards of packed graphs: two passes over a corpus, by worker processes.

1. The words of the corpus and how often each stands there, its labels, its number of documents.
2. With the vocabulary that came of it: packed graphs and targets, in shards.

What each pass made of a piece of the corpus is kept in a folder, under a digest of the piece's content and of all that
the result hangs on. A pass that was cut off goes on with the pieces that it had not come to.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpad.data.equal_texts import text_hashes
from mpad.data.labels import Labels, as_labels
from mpad.data.readers import as_numbers
from mpad.data.streams import Chunk, Piece
from mpad.errors import InputError
from mpad.files.atomic import write_file
from mpad.graph.build import GraphConfig, build_graphs
from mpad.graph.packed import PackedGraphs, concatenate
from mpad.text.tokenizer import Tokenizer
from mpad.text.vocabulary import Vocabulary, learn_vocabulary
from mpad.training.progress import with_bar
from mpad.training.stream_windows import Shard, read_list, write_list, write_shard

_FORMAT = 3  # raised where shards or counts come to mean something else
_MOST_COUNTED = 1_000_000  # words that are remembered while counting; beyond, the rarest are forgotten
MOST_WORDS = 200_000  # words that the vocabulary keeps


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
    """Its most frequent words, most frequent first; ties in the order of the alphabet."""
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


def _by_workers(function: Callable[[Any, Any], Any], how: Any, tasks: Sequence[Any], workers: int) -> Iterator[Any]:
    """Results of function(how, task) as they come, by so many processes; by this one where one is enough.

    `how` holds a vocabulary, too large to be sent with every task: each process gets it once.
    """
    if workers <= 1 or len(tasks) <= 1:
        yield from (function(how, task) for task in tasks)
        return
    context = get_context("spawn")
    with ProcessPoolExecutor(min(workers, len(tasks)), context, _begin, (function, how)) as pool:
        futures = [pool.submit(_work, task) for task in tasks]
        try:
            for future in as_completed(futures):
                yield future.result()
        finally:
            for future in futures:
                future.cancel()


_own: list[Any] = []  # of a worker process: its function, and how


def _begin(function: Callable[[Any, Any], Any], how: Any) -> None:
    _own[:] = [function, how]


def _work(task: Any) -> Any:
    function, how = _own
    return function(how, task)


# ── The first pass ──


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


# ── The second pass ──


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
