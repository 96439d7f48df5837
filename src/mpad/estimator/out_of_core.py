"""Fit a model on a corpus that does not fit into memory, in one process or in several.

Two passes over the text write shards of packed graphs (training/stream.py). A pass over the shards fits the
linear part. The network is then trained on shuffled windows of them, and the parts are weighted on held-out documents.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mpad._version import __version__
from mpad.data.equal_texts import Copies
from mpad.data.inputs import as_seed
from mpad.data.inspection import no_words
from mpad.data.labels import Labels
from mpad.data.streams import Columns, Piece, list_pieces
from mpad.errors import InputError
from mpad.estimator.classifier import MPADClassifier, calibrate, linear_vectors, model_of_words
from mpad.estimator.held_out_scores import score_held_out
from mpad.estimator.training_card import TrainingSummary, training_card
from mpad.files.cache import make_private
from mpad.graph.packed import PackedGraphs, take_documents
from mpad.inference.pipeline import Pipeline
from mpad.linear.features import Known, learn_known
from mpad.linear.fit import SVM, LinearData
from mpad.linear.sgd import MOST_PAIRS, StreamedSVM, join_streamed
from mpad.network import find_device, to_device
from mpad.text.tokenizer import Tokenizer, as_tokenizer
from mpad.training.checkpoint import Checkpoint, fingerprint
from mpad.training.loop import History, train_stream
from mpad.training.processes import Processes, join_processes
from mpad.training.progress import Sink, silent, wants_bar, with_bar
from mpad.training.stream import (
    Counts,
    Reading,
    ShardedCorpus,
    StreamOptions,
    Window,
    build_shards,
    corpus_labels,
    corpus_vocabulary,
    count_corpus,
)
from mpad.training.task import Examples, Task, make_examples

Result = TypeVar("Result")
_SAMPLE = 50_000  # documents that IDF and word pairs are learned from
_SHARD = 8_192  # documents
_WORDS = 4_000_000  # words of the documents that are in memory together, whatever their number
_PASSED, _MOST_PASSES = 500_000, 30  # documents that the linear part passes over; small corpora repeatedly


def fit_stream(
    estimator: MPADClassifier,
    data: Any,
    columns: Columns,
    options: StreamOptions,
    sink: Sink | None,
    checkpoint: str | Path | None,
    resume: bool,
    keep_interrupted: bool = False,
) -> None:
    """Fit the estimator; in each of several processes it ends with the same model.

    With `keep_interrupted`, an interrupt after an epoch ends training in a single process and keeps the weights so far.
    """
    if estimator._members > 1:
        raise InputError("several members are trained on documents in memory alone; stream with members=1")
    if estimator._transformer is not None:
        raise InputError("a transformer reads documents in memory alone; stream with features='words'")
    kept = None if checkpoint is None else Checkpoint(Path(checkpoint), resume)
    saved_seed = None if kept is None else kept.seed
    seed = as_seed(estimator.random_state) if saved_seed is None else saved_seed
    make_private(options.cache)
    with join_processes(find_device(estimator.device)) as processes:
        shown = sink is None and processes.first and wants_bar(estimator.verbose)
        fit = _StreamedFit(estimator, options, processes, seed, shown)
        corpus = fit.read(list_pieces(data, columns))
        linear = fit.fit_svm(corpus)
        if kept is not None:
            kept.belong_to(fit.checkpoint_key(corpus), seed)
        with estimator.progress_bar() if shown else nullcontext(sink or silent) as watching:
            history, logits = fit.train(corpus, watching if processes.first else silent, kept, keep_interrupted)
    _complete(estimator, corpus, linear, history, logits)


@dataclass(frozen=True)
class _Corpus:
    """A corpus on disk, and the model that reads it."""

    model: Pipeline
    counts: Counts
    shards: ShardedCorpus
    held: tuple[PackedGraphs, NDArray[Any]]  # held-out documents and their targets
    digest: str  # of the settings that the shards depend on


@dataclass(frozen=True)
class _StreamedFit:
    """Steps of a streamed fit, in the only process or in one of several."""

    estimator: MPADClassifier
    options: StreamOptions
    processes: Processes
    seed: int
    shown: bool  # whether this process shows its progress

    def read(self, pieces: Sequence[Piece]) -> _Corpus:
        """Pass over the text twice: for the words and labels, and for packed graphs."""
        estimator, options = self.estimator, self.options
        tokenizer = as_tokenizer(estimator.tokenizer, _first_texts(pieces))
        counts = self._by_shares(count_corpus, tokenizer, pieces)
        if not counts.words:
            raise no_words(counts.documents)
        labels, lanes = corpus_labels(counts), options.lanes_of(self.processes.size)
        vocabulary = corpus_vocabulary(counts, max(2, estimator.min_count))
        frequencies = np.array([counts.words[word] for word in vocabulary.words], np.int64)
        estimator._set_encoder(vocabulary.words, frequencies)
        model = model_of_words(estimator, tokenizer, vocabulary, labels, self.seed, [])
        size = min(_bounded(counts, _SHARD, _WORDS // 2), max(1, counts.documents // (8 * lanes)))
        reading = Reading(tokenizer, estimator._by_sentence, model.graph_config, model.vocabulary, labels, size)
        files = self._by_shares(build_shards, reading, pieces)
        share = min(estimator.validation_fraction, _bounded(counts, options.most_held, _WORDS) / counts.documents)
        shards = ShardedCorpus(files, share, self.seed, lanes, _bounded(counts, options.window, _WORDS))
        return _Corpus(model, counts, shards, shards.held_out_documents(), reading.digest())

    def _by_shares(
        self,
        pass_over: Callable[[Sequence[Piece], Any, Path, int, bool], Result],
        context: Tokenizer | Reading,
        pieces: Sequence[Piece],
    ) -> Result:
        """Run a pass over the text: each process reads its share of the pieces, then all read every result."""
        cache, workers = self.options.cache, self.options.workers
        if self.processes.size == 1:
            return pass_over(pieces, context, cache, workers, self.shown)
        own = [pieces[k] for k in self.processes.share(len(pieces))]
        pass_over(own, context, cache, workers, self.shown)
        self.processes.wait()
        return pass_over(pieces, context, cache, 1, False)

    def fit_svm(self, corpus: _Corpus) -> tuple[Known, SVM] | None:
        """Choose n-grams and fit an SVM's weights for them; return None if the model has no linear part."""
        if not self.estimator._wants_potentials:
            return None
        shards, labels, words = corpus.shards, corpus.model.labels, corpus.model.vocabulary.words
        sample = shards.sample(_bounded(corpus.counts, _SAMPLE, 2 * _WORDS))
        known = learn_known(*sample, len(words), words, MOST_PAIRS)
        documents, svms = corpus.counts.documents, []
        epochs = [-1 - turn for turn in range(min(_MOST_PASSES, max(1, _PASSED // documents)))]
        total = sum(shards.rounds(epoch) for epoch in epochs)
        for lane in self.processes.share(shards.lanes):
            svm = StreamedSVM(known, len(labels), labels.multilabel, documents // shards.lanes, self.seed)
            windows = (window for epoch in epochs for window in shards.windows(epoch, 128, [lane]))
            svm.learn_from(with_bar(windows, "windows fitted linearly", total, self.shown))
            svms.append(svm)
        return known, svms[0].average(shards.lanes, self.processes, svms[1:])

    def checkpoint_key(self, corpus: _Corpus) -> str:
        """Return a digest of what a checkpoint belongs to."""
        settings = [self.estimator._json_params(), corpus.shards.lanes, self.options.epoch_documents, corpus.digest]
        return fingerprint(
            [__version__, *settings], {"documents": np.array([shard.documents for shard in corpus.shards.shards])}
        )

    def train(
        self, corpus: _Corpus, sink: Sink, checkpoint: Checkpoint | None, keep_interrupted: bool
    ) -> tuple[History, NDArray[np.floating]]:
        """Train the network on the windows of each epoch; return its logits of the held-out documents, too."""
        estimator, model, (held, truth) = self.estimator, corpus.model, corpus.held
        device = find_device(estimator.device)
        model.network.to(device)
        config = estimator._training_config(self.seed, corpus.counts.documents)
        most = self.options.epoch_documents
        if most is not None and estimator.max_epochs == "auto":
            config = replace(config, max_epochs=estimator._training_config(self.seed, most).max_epochs)
        nothing = to_device(take_documents(held, np.zeros(0, np.int64)), device)
        none = make_examples(nothing, np.zeros(0, np.int64), truth[:0])
        checked = np.array(self.processes.share(len(held)), np.int64)
        held_out = to_device(held, device)
        task = Task(model.network, none, make_examples(held_out, checked, truth), config)
        class_weight = _class_weights(estimator.class_weight, model.labels, corpus.counts)
        lanes = list(self.processes.share(corpus.shards.lanes))

        def windows(epoch: int) -> Iterator[Window]:
            return corpus.shards.windows(epoch, config.batch_size, lanes, most)

        def as_examples(window: Window) -> Examples:
            weights = model.labels.weights(class_weight, window.targets)
            everything = np.arange(len(window.graphs))
            return make_examples(to_device(window.graphs, device), everything, window.targets, weights)

        history = train_stream(task, windows, as_examples, sink, checkpoint, self.processes, keep_interrupted)
        return history, model.network.logits(held_out, np.arange(len(held)))


def _complete(
    estimator: MPADClassifier,
    corpus: _Corpus,
    linear: tuple[Known, SVM] | None,
    history: History,
    logits: NDArray[np.floating],
) -> None:
    """Weigh the parts of the model on held-out documents, score it, and remember both."""
    model, counts, (held, truth) = corpus.model, corpus.counts, corpus.held
    fitted = None
    if linear is not None:
        ones = np.ones(len(truth), np.float32)
        n_words, vectors = len(model.vocabulary.words), linear_vectors(model)
        fitted = join_streamed(LinearData(held, truth, ones, len(model.labels), n_words, vectors), *linear, logits)
    model, result = calibrate(model, fitted, logits, truth)
    assert result.logits is not None
    estimator._remember(model, result, [history])
    estimator.held_out_ = score_held_out(model.labels, result.logits, truth, None)
    svm = result.accuracies.get("ngram-svm")
    if estimator.held_out_ is not None and not model.labels.multilabel and svm is not None:
        estimator.held_out_ = replace(estimator.held_out_, baseline=svm, baseline_name="n-gram SVM trained by SGD")
    by_count = tuple((str(name), n) for name, n in counts.labels.most_common())
    estimator.summary_ = TrainingSummary(counts.documents, by_count, Copies(corpus.shards.copies, conflicts=0))
    estimator.card_ = training_card(estimator, counts.documents, len(held), [history])


def _bounded(counts: Counts, documents: int, words: int) -> int:
    """Return how many documents of the corpus hold about so many words, at most `documents`."""
    length = max(1, sum(counts.words.values()) // counts.documents)
    return max(1, min(documents, words // length))


def _first_texts(pieces: Sequence[Piece]) -> list[str]:
    for piece in pieces:
        for chunk in piece.chunks():
            return chunk.texts
    names = dict.fromkeys(str(piece.source) for piece in pieces if isinstance(piece.source, Path))
    raise InputError(f"{', '.join(names) or 'the corpus'}: holds no documents")


def _class_weights(class_weight: Any, labels: Labels, counts: Counts) -> Any:
    """Return class weights balanced over the whole corpus, not over a window."""
    if class_weight != "balanced":
        return class_weight
    named = Counter({str(label): n for label, n in counts.labels.items()})
    known = labels.classes.tolist()
    return {label: counts.documents / (len(known) * named[str(label)]) for label in known}
