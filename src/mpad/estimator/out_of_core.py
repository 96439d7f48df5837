"""Fit a model on a corpus that does not fit into memory, in one process or in several.

Two passes over the text write shards of packed graphs (training/stream_build.py). A pass over the shards fits the
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
from mpad.training.loop import Lesson, train_stream
from mpad.training.processes import Processes, join_processes
from mpad.training.progress import Sink, silent, wants_bar, with_bar
from mpad.training.stream_build import Counts, Reading, build_shards, corpus_labels, corpus_vocabulary, count_corpus
from mpad.training.stream_options import StreamOptions
from mpad.training.stream_windows import ShardedCorpus
from mpad.training.task import Task, make_examples

Kept = TypeVar("Kept")
_SAMPLE = 50_000  # documents that rarity of words, and pairs, are learnt from
_SHARD = 8_192  # documents
_WORDS = 4_000_000  # words of documents that are in memory together, whatever their number
_PASSED, _MOST_PASSES = 500_000, 30  # documents that the linear part passes over, of small corpora often


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
    device = find_device(estimator.device)
    make_private(options.cache)
    with join_processes(device) as processes:
        shown = sink is None and processes.first and wants_bar(estimator.verbose)
        pieces = list_pieces(data, columns)
        tokenizer = as_tokenizer(estimator.tokenizer, _first_texts(pieces))
        fit = _Fit(estimator, options, processes, seed, shown)
        counts = fit.by_shares(count_corpus, tokenizer, pieces)
        if not counts.words:
            raise no_words(counts.documents)
        labels = corpus_labels(counts)
        lanes = options.lanes_of(processes.size)
        vocabulary = corpus_vocabulary(counts, max(2, estimator.min_count))
        model = model_of_words(estimator, tokenizer, vocabulary, labels, seed, [])
        length = max(1, sum(counts.words.values()) // counts.documents)  # words of a document, about

        def bounded(documents: int, words: int) -> int:
            return max(1, min(documents, words // length))

        size = min(bounded(_SHARD, _WORDS // 2), max(1, counts.documents // (8 * lanes)))
        reading = Reading(tokenizer, estimator._by_sentence, model.graph_config, model.vocabulary, labels, size)
        shards = fit.by_shares(build_shards, reading, pieces)
        share = min(estimator.validation_fraction, bounded(options.most_held, _WORDS) / counts.documents)
        corpus = ShardedCorpus(shards, share, seed, lanes, bounded(options.window, _WORDS))
        held = corpus.held_out_documents()
        sample, words = bounded(_SAMPLE, 2 * _WORDS), model.vocabulary.words
        known, linear = fit.linear(corpus, labels, words, sample)
        if kept is not None:
            key = fingerprint(
                [__version__, estimator._json_params(), lanes, options.epoch_documents, reading.digest()],
                {"documents": np.array([shard.documents for shard in shards])},
            )
            kept.belong_to(key, seed)
        weights = _class_weights(estimator.class_weight, labels, counts)
        with estimator.progress_bar() if shown else nullcontext(sink or silent) as watching:
            task, lessons = fit.lessons(model, corpus, held, weights)
            shown_to = watching if processes.first else silent
            history = train_stream(task, lessons, shown_to, kept, processes, keep_interrupted)
    assert task.validation is not None
    logits = model.network.logits(task.validation.corpus, np.arange(len(held[0])))
    fitted = None
    if linear is not None and known is not None:
        ones = np.ones(len(held[1]), np.float32)
        data = LinearData(*held, ones, len(labels), len(words), linear_vectors(model))
        fitted = join_streamed(data, known, linear, logits)
    model, result = calibrate(model, fitted, logits, held[1])
    estimator._remember(model, result, [history])
    assert result.logits is not None
    estimator.held_out_ = score_held_out(model.labels, result.logits, held[1], None)
    svm = result.accuracies.get("ngram-svm")
    if estimator.held_out_ is not None and not labels.multilabel and svm is not None:
        estimator.held_out_ = replace(estimator.held_out_, baseline=svm, baseline_name="n-gram SVM trained by SGD")
    by_count = tuple((str(name), n) for name, n in counts.labels.most_common())
    estimator.summary_ = TrainingSummary(counts.documents, by_count, Copies(corpus.copies, conflicts=0))
    estimator.card_ = training_card(estimator, counts.documents, len(held[0]), [history])


def _first_texts(pieces: Sequence[Piece]) -> list[str]:
    for piece in pieces:
        for chunk in piece.chunks():
            return chunk.texts
    names = dict.fromkeys(str(piece.source) for piece in pieces if isinstance(piece.source, Path))
    raise InputError(f"{', '.join(names) or 'the corpus'}: holds no documents")


@dataclass(frozen=True)
class _Fit:
    """Steps of a streamed fit, in one process of one or several."""

    estimator: MPADClassifier
    options: StreamOptions
    processes: Processes
    seed: int
    shown: bool  # whether this process shows its progress

    def by_shares(
        self,
        pass_over: Callable[[Sequence[Piece], Any, Path, int, bool], Kept],
        how: Tokenizer | Reading,
        pieces: Sequence[Piece],
    ) -> Kept:
        """Run a pass over the text: each process reads its share of the pieces, then all read every result."""
        cache, workers = self.options.cache, self.options.workers
        if self.processes.size == 1:
            return pass_over(pieces, how, cache, workers, self.shown)
        own = [pieces[k] for k in self.processes.share(len(pieces))]
        pass_over(own, how, cache, workers, self.shown)
        self.processes.wait()
        return pass_over(pieces, how, cache, 1, False)

    def linear(
        self, corpus: ShardedCorpus, labels: Labels, words: Sequence[str], sample: int
    ) -> tuple[Known | None, SVM | None]:
        """Choose n-grams and fit an SVM's weights for them; return None if the model has no linear part."""
        if not self.estimator._wants_potentials:
            return None, None
        known = learn_known(*corpus.sample(sample), len(words), words, MOST_PAIRS)
        documents = sum(shard.documents for shard in corpus.shards)
        svms = []
        epochs = [-1 - turn for turn in range(min(_MOST_PASSES, max(1, _PASSED // documents)))]
        total = sum(corpus.rounds(epoch) for epoch in epochs)
        for lane in self.processes.share(corpus.lanes):
            svm = StreamedSVM(known, len(labels), labels.multilabel, documents // corpus.lanes, self.seed)
            windows = (window for epoch in epochs for window in corpus.windows(epoch, 128, [lane]))
            svm.learn_from(with_bar(windows, "windows fitted linearly", total, self.shown))
            svms.append(svm)
        return known, svms[0].average(corpus.lanes, self.processes, svms[1:])

    def lessons(
        self, model: Pipeline, corpus: ShardedCorpus, held: tuple[PackedGraphs, NDArray[Any]], class_weight: Any
    ) -> tuple[Task, Callable[[int], Iterator[Lesson]]]:
        """Return the training task of the network, and the windows of each epoch."""
        estimator, epoch_documents = self.estimator, self.options.epoch_documents
        device = find_device(estimator.device)
        model.network.to(device)
        config = estimator._training_config(self.seed, sum(shard.documents for shard in corpus.shards))
        if epoch_documents is not None and estimator.max_epochs == "auto":
            whole = estimator._training_config(self.seed, epoch_documents)
            config = replace(config, max_epochs=whole.max_epochs)
        nothing = take_documents(held[0], np.zeros(0, np.int64))
        none = make_examples(to_device(nothing, device), np.zeros(0, np.int64), held[1][:0])
        checked = np.array(self.processes.share(len(held[0])), np.int64)
        validation = make_examples(to_device(held[0], device), checked, held[1])
        mine = list(self.processes.share(corpus.lanes))

        def lessons(epoch: int) -> Iterator[Lesson]:
            for window in corpus.windows(epoch, config.batch_size, mine, epoch_documents):
                weights = model.labels.weights(class_weight, window.targets)
                everything = np.arange(len(window.graphs))
                examples = make_examples(to_device(window.graphs, device), everything, window.targets, weights)
                yield Lesson(examples, window.batches, window.before, window.documents)

        return Task(model.network, none, validation, config), lessons


def _class_weights(class_weight: Any, labels: Labels, counts: Counts) -> Any:
    """Return class weights balanced over the whole corpus, not over a window."""
    if class_weight != "balanced":
        return class_weight
    named = Counter({str(label): n for label, n in counts.labels.items()})
    known = labels.classes.tolist()
    return {label: counts.documents / (len(known) * named[str(label)]) for label in known}
