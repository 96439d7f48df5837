"""Pretraining: train an MPAD network to imitate sentence encoders on text without labels.

    texts → passages (passages.py) → words and pieces (vocabulary.py), teachers' vectors (teachers.py) → shards on disk
    → the training loop of every streamed fit, with the loss of imitation.py

Word vectors start as the teachers' vectors of single words, reduced by a principal component analysis. Everything
before training is kept on disk, so that an interrupted run resumes.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from mpad._version import __version__
from mpad.config import MPADConfig, TrainingConfig
from mpad.data.equal_texts import text_hashes
from mpad.encoder.encoder import Encoder
from mpad.encoder.imitation import CONTRASTS, Imitate, find_directions
from mpad.encoder.passages import cut_passages
from mpad.encoder.start import start_from
from mpad.encoder.teachers import CHUNK, Teacher
from mpad.encoder.vocabulary import count_words, encode_pieces, learn_pieces, spelling
from mpad.errors import InputError
from mpad.files.atomic import write_file
from mpad.files.cache import cache_folder, make_private
from mpad.graph.build import GraphConfig, build_graphs
from mpad.graph.packed import take_documents
from mpad.model import MPAD
from mpad.network import find_device, to_device
from mpad.storage.model_folder import VECTORS, model_card
from mpad.text.tokenizer import Tokenizer, as_tokenizer
from mpad.text.vocabulary import Vocabulary
from mpad.training.checkpoint import Checkpoint, fingerprint
from mpad.training.loop import train_stream
from mpad.training.processes import Processes, join_processes
from mpad.training.progress import Sink, silent, with_bar
from mpad.training.stream import Shard, ShardedCorpus, Window, read_ahead, write_shard
from mpad.training.task import Examples, Task, make_examples

_MOST_CHECKED = 4_096  # passages that validation cosines are computed on
_WINDOW = 4 * CHUNK  # passages in memory at a time
_COMMON = 1e-3  # share of the running words from which a word's first vector is shortened
_FITTED = 20_000  # words that the principal components are computed from


@dataclass(frozen=True)
class PretrainConfig:
    """Settings of pretraining.

    Parameters
    ----------
    hidden : int, default=128
        Width of a node's state.
    steps : int, default=2
        Rounds of message passing.
    vector_width : int, default=256
        Width of the word vectors.
    read_width : int, default=512
        Width of a document's vector, from which the teachers' vectors are predicted.
    directed : bool, default=True
        Edges follow the order of the words.
    words : int, default=40000
        Words with vectors of their own.
    pieces : int, default=8000
        Pieces of words that all other words are composed of.
    passages : int, default=6000000
        Passages to train on, repeats included.
    rounds : int, default=48
        Parts of the training; a validation and a checkpoint follow each.
    batch_size : int, default=512
        Passages per step.
    learning_rate : float, default=0.003
        Highest learning rate of Adam; it falls along a cosine.
    contrast : float, default=0.3
        Weight of the loss on differences between opposite sentences, such as praise and blame.
    tokenizer : str, default="kim"
        Tokenizer by name.
    seed : int, default=0
        Seed of passages, weights and their order.

    """

    hidden: int = 128
    steps: int = 2
    vector_width: int = 256
    read_width: int = 512
    directed: bool = True
    words: int = 40_000
    pieces: int = 8_000
    passages: int = 6_000_000
    rounds: int = 48
    batch_size: int = 512
    learning_rate: float = 0.003
    contrast: float = 0.3
    tokenizer: str = "kim"
    seed: int = 0

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if each.name != "seed" and each.type is int and (not isinstance(value, int) or value < 1):
                raise InputError(f"{each.name} must be a whole number, at least 1, not {value!r}")
        if not 0 <= self.contrast < float("inf"):
            raise InputError(f"contrast must be 0 or above, not {self.contrast!r}")
        if not 0 < self.learning_rate < float("inf"):
            raise InputError(f"learning_rate must be above 0, not {self.learning_rate!r}")

    @property
    def network(self) -> dict[str, Any]:
        """Return the settings of the network that differ from the paper's."""
        authors = "mlp_before", "mlp_norm", "attention_bias", "score_tanh", "attention_dense"
        own = {
            "hidden": self.hidden,
            "steps": self.steps,
            "read_width": self.read_width,
            "vector_width": self.vector_width,
        }
        return {**own, **dict.fromkeys(authors, True), "mlp_relu": False, "read_words": True}


def pretrain(
    texts: Iterable[str],
    teachers: Sequence[str | Path],
    config: PretrainConfig | None = None,
    *,
    teacher_weights: Sequence[float] | None = None,
    start: Encoder | None = None,
    device: str = "auto",
    cache: str | Path | None = None,
    checkpoint: str | Path | None = None,
    resume: bool = False,
    sink: Sink = silent,
    shown: bool = False,
    name: str = "encoder",
) -> Encoder:
    """Train an encoder on texts without labels.

    Parameters
    ----------
    texts : iterable of str
        The texts, read once.
    teachers : sequence of str or path
        "minilm", "use", or folders of sentence-transformers models.
    config : PretrainConfig or None, default=None
        Settings; None means the defaults. With `start`, its sizes, tokenizer and vocabulary apply instead.
    teacher_weights : sequence of float or None, default=None
        Weight of each teacher in the loss; None means 1 for all.
    start : Encoder or None, default=None
        An encoder to continue from, for example to adapt it to texts of a field.
    device : str, default="auto"
        Where teachers and training run.
    cache : path or None, default=None
        Folder for the teachers' vectors and the packed passages; by default in ~/.cache/mpad.
    checkpoint : path or None, default=None
        A file that is written after every round.
    resume : bool, default=False
        Continue from the checkpoint, if there is one.
    sink : callable
        Called with an `EpochReport` after every round.
    shown : bool, default=False
        Show progress of what comes before training.
    name : str
        Name of the encoder.

    Returns
    -------
    Encoder

    """
    config, folder = config or PretrainConfig(), Path(cache) if cache else cache_folder() / "pretraining"
    place = find_device(device)
    known = [Teacher(teacher, str(place), folder / "teachers") for teacher in teachers]
    if not known:
        raise InputError("pretraining needs a teacher: 'minilm', 'use' or the folder of a sentence-transformers model")
    labels = [teacher.label for teacher in known]
    if len(set(labels)) < len(labels):
        twice = next(label for label in labels if labels.count(label) > 1)
        raise InputError(f"two teachers are named '{twice}': name each once, and rename a folder if two share a name")
    weights = [1.0] * len(known) if teacher_weights is None else [float(each) for each in teacher_weights]
    if len(weights) != len(known) or not all(0 < each < float("inf") for each in weights):
        raise InputError(f"expected a weight above 0 for each teacher: {len(known)} in all, found {weights}")
    config = replace(config, rounds=max(1, min(config.rounds, config.passages // config.batch_size)))
    kept = None if checkpoint is None else Checkpoint(Path(checkpoint), resume)
    with join_processes(place) as processes:
        run = _Run(config, known, folder, processes, shown and processes.first, start, place)
        chunks, counts = run.cut(texts)
        if len(chunks) < processes.size:
            few = f"{sum(chunk.passages for chunk in chunks):,} passages are too few for {processes.size} processes"
            raise InputError(f"{few}: each needs a chunk of {CHUNK:,}; start fewer processes")
        vocabulary = run.vocabulary(counts)
        shards = run.embed(chunks, vocabulary)
        network = run.network(vocabulary, counts).to(place)
        corpus = ShardedCorpus(shards, run.held_out(chunks), config.seed, processes.size, _WINDOW)
        if kept is not None:
            learned = [teacher.digest for teacher in known], None if start is None else dict(start.card)
            facts = [__version__, asdict(config), weights, *learned, [chunk.path.name for chunk in chunks]]
            kept.belong_to(fingerprint(facts, {}), config.seed)
        objective = run.objective(chunks, weights)
        cosines, rounds = run.train(network, corpus, objective, sink if processes.first else silent, kept)
    card = model_card(
        sum(chunk.passages for chunk in chunks),
        teachers={teacher.label: teacher.digest for teacher in known},
        passages_trained=config.passages,
        rounds=rounds,
        cosines={teacher.label: round(cosine, 4) for teacher, cosine in zip(known, cosines, strict=False)},
        settings=asdict(config),
        teacher_weights=weights,
        start=None if start is None else start.name,
    )
    tensors = {key: value.detach().cpu().numpy() for key, value in network.state_dict().items()}
    tensors[VECTORS] = network.vectors.detach().cpu().numpy()
    widths = {teacher.label: teacher.width for teacher in known}
    return Encoder(name, run.tokenizer, vocabulary, run.graph, network.config, tensors, widths, card)


@dataclass(frozen=True)
class _Chunk:
    """Some passages on disk."""

    path: Path
    passages: int

    def read(self) -> list[str]:
        return list(json.loads(self.path.read_bytes()))


class _Run:
    """Steps of a pretraining, in the only process or in one of several."""

    def __init__(
        self,
        config: PretrainConfig,
        teachers: Sequence[Teacher],
        folder: Path,
        processes: Processes,
        shown: bool,
        start: Encoder | None,
        device: torch.device,
    ) -> None:
        self.device = device
        self.config, self.teachers, self.folder, self.processes, self.shown = config, teachers, folder, processes, shown
        self.start = start
        self.tokenizer: Tokenizer = as_tokenizer(config.tokenizer, []) if start is None else start.tokenizer
        self.graph = GraphConfig(directed=config.directed) if start is None else start.graph_config
        make_private(folder)

    def cut(self, texts: Iterable[str]) -> tuple[list[_Chunk], Counter[str]]:
        """Cut texts into passages, write them in chunks, and count their words."""
        passages, chunks = cut_passages(texts, self.config.seed), []
        counts: Counter[str] = Counter()
        while chunk := list(islice(passages, CHUNK)):
            counts.update(count_words(chunk, self.tokenizer))
            data = json.dumps(chunk).encode()
            path = self.folder / "passages" / f"{hashlib.blake2b(data, digest_size=16).hexdigest()}.json"
            if not path.is_file() and self.processes.first:
                make_private(path.parent)
                write_file(path, data, private=True)
            chunks.append(_Chunk(path, len(chunk)))
        if not counts:
            raise InputError("the texts hold no words to learn from")
        self.processes.wait()
        return chunks, counts

    def vocabulary(self, counts: Counter[str]) -> Vocabulary:
        """Choose words and pieces, once: another run could break ties between pieces otherwise."""
        if self.start is not None:
            return self.start.vocabulary
        facts = json.dumps([sorted(counts.items()), self.config.words, self.config.pieces])
        path = self.folder / "vocabularies" / f"{hashlib.blake2b(facts.encode(), digest_size=16).hexdigest()}.json"
        if self.processes.first and not path.is_file():
            learned = learn_pieces(counts, self.config.words, self.config.pieces)
            make_private(path.parent)
            write_file(path, json.dumps([learned.seen, list(learned.words)]).encode(), private=True)
        self.processes.wait()
        seen, words = json.loads(path.read_bytes())
        return Vocabulary(words, seen=seen)

    def embed(self, chunks: Sequence[_Chunk], vocabulary: Vocabulary) -> list[Shard]:
        """Pack the passages of each chunk with the teachers' vectors; each process has its share of the chunks."""
        words = hashlib.blake2b("\n".join(vocabulary.words).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
        way = "" if self.graph.directed else "undirected"
        learned = "-".join([words + way, *[teacher.digest[:8] for teacher in self.teachers]])
        shards = [Shard(c.path.parent / f"{c.path.stem}-{learned}.safetensors", c.passages) for c in chunks]
        own = self.processes.share(len(chunks))
        for k in with_bar(own, "chunks of passages embedded", len(own), self.shown):
            if not shards[k].path.is_file():
                passages = chunks[k].read()
                graphs = build_graphs(encode_pieces(vocabulary, passages, self.tokenizer), self.graph)
                vectors = np.concatenate([teacher.vectors(passages) for teacher in self.teachers], axis=1)
                write_shard(shards[k].path, graphs, vectors, text_hashes(passages))
        self.processes.wait()
        return shards

    def held_out(self, chunks: Sequence[_Chunk]) -> float:
        """Return the share of passages that validation cosines are computed on."""
        return min(0.05, _MOST_CHECKED / sum(chunk.passages for chunk in chunks))

    def network(self, vocabulary: Vocabulary, counts: Counter[str]) -> MPAD:
        """Return the network to train: with random weights over the teachers' word vectors, or that of `start`."""
        config, n_outputs = self.config, sum(teacher.width for teacher in self.teachers)
        torch.manual_seed(config.seed)
        if self.start is not None:
            old = self.start.config
            network = MPAD(MPADConfig(**{**asdict(old), "n_classes": n_outputs, "learn_vectors": True}))
            start_from(network, self.start)
            self._copy_outputs(network, self.start)
            network.set_vectors(torch.from_numpy(self.start.tensors[VECTORS].astype(np.float32)))
            return network
        network = MPAD(
            MPADConfig(
                n_classes=n_outputs,
                n_words=vocabulary.n_rows,
                dropout=0.0,
                learn_vectors=True,
                **config.network,
            )
        )
        network.set_vectors(torch.from_numpy(self._word_vectors(vocabulary, counts)))
        return network

    @torch.no_grad()
    def _copy_outputs(self, network: MPAD, start: Encoder) -> None:
        """Copy the last layer's rows of the teachers that `start` has imitated, too."""
        place, old = 0, dict(zip(start.outputs, np.cumsum([0, *start.outputs.values()]).tolist(), strict=False))
        for teacher in self.teachers:
            if start.outputs.get(teacher.label) == teacher.width:
                rows = slice(old[teacher.label], old[teacher.label] + teacher.width)
                for name, own in (("weight", network.classes.weight), ("bias", network.classes.bias)):
                    own[place : place + teacher.width] = torch.from_numpy(start.tensors[f"classes.{name}"][rows])
            place += teacher.width

    def _word_vectors(self, vocabulary: Vocabulary, counts: Counter[str]) -> NDArray[np.float32]:
        """Return principal components of the teachers' vectors of single words; frequent words are shortened."""
        words = [spelling(word) or "." for word in vocabulary.words]
        parts = [words[k : k + CHUNK] for k in range(0, len(words), CHUNK)]
        vectors = [np.concatenate([teacher.vectors(part) for teacher in self.teachers], axis=1) for part in parts]
        x = np.concatenate(vectors).astype(np.float32)
        x -= x.mean(0)
        sample = np.random.default_rng(self.config.seed).permutation(len(x))[:_FITTED]
        components = np.linalg.eigh(x[sample].T @ x[sample])[1].T[::-1][: self.config.vector_width]
        x = x @ components.T
        share = np.array([counts[word] for word in vocabulary.words]) / sum(counts.values())
        x *= (_COMMON / (_COMMON + share) / np.linalg.norm(x, axis=1).mean())[:, None]
        rows = np.zeros((vocabulary.n_rows, self.config.vector_width), np.float32)
        rows[: len(x), : x.shape[1]] = x
        return rows

    def objective(self, chunks: Sequence[_Chunk], weights: Sequence[float]) -> Imitate:
        """Return the loss, with the directions of opposite sentences that the teachers see."""
        widths, contrast, device = [t.width for t in self.teachers], self.config.contrast, self.device
        if not contrast:
            return Imitate(widths, weights)
        sentences, passages = [each for pair in CONTRASTS for each in pair], chunks[0].read()
        found = [find_directions(t.vectors(sentences), t.vectors(passages), device) for t in self.teachers]
        return Imitate(widths, weights, found, contrast)

    def train(
        self, network: MPAD, corpus: ShardedCorpus, objective: Imitate, sink: Sink, checkpoint: Checkpoint | None
    ) -> tuple[list[float], int]:
        """Train the network; return the cosine to each teacher on held-out passages, and the number of rounds."""
        config, device = self.config, network.device
        widths = [teacher.width for teacher in self.teachers]
        held, truth = corpus.held_out_documents()
        held, truth = take_documents(held, np.arange(min(len(held), _MOST_CHECKED))), truth[:_MOST_CHECKED]
        nothing = to_device(take_documents(held, np.zeros(0, np.int64)), device)
        none = make_examples(nothing, np.zeros(0, np.int64), truth[:0])
        checked, own = to_device(held, device), np.array(self.processes.share(len(held)), np.int64)
        lanes = list(self.processes.share(corpus.lanes))
        training = TrainingConfig(
            max_epochs=config.rounds,
            patience=None,
            batch_size=config.batch_size,
            learning_rate=config.learning_rate,
            schedule="cosine",
            seed=config.seed,
            keep="best" if len(held) else "last",  # the round with the highest cosine on held-out passages
        )
        examples = make_examples(checked, own, truth) if len(held) else None
        task = Task(network, none, examples, training, objective=objective)

        def windows(epoch: int) -> Iterator[Window]:
            return read_ahead(_windows(corpus, epoch, config, lanes))

        def as_examples(window: Window) -> Examples:
            return make_examples(to_device(window.graphs, device), np.arange(len(window.graphs)), window.targets)

        history = train_stream(task, windows, as_examples, sink, checkpoint, self.processes)
        logits = network.logits(checked, np.arange(len(held)))
        ends = np.cumsum(widths)[:-1]
        pairs = zip(np.split(logits, ends, 1), np.split(truth.astype(np.float32), ends, 1), strict=True)
        cosines = [functional.cosine_similarity(torch.from_numpy(x), torch.from_numpy(y)).mean() for x, y in pairs]
        return [float(cosine) for cosine in cosines] if len(held) else [], len(history.reports)


def _windows(corpus: ShardedCorpus, epoch: int, config: PretrainConfig, lanes: Sequence[int]) -> Iterator[Window]:
    """Yield the windows of a round, over the corpus again and again until it has its share of the passages."""
    left = config.passages // config.rounds
    for turn in range(1 + left):
        for window in corpus.windows(epoch + turn * config.rounds, config.batch_size, lanes, left):
            yield window
            left -= window.documents
        if left <= 0:
            return
