"""What all our estimators of networks have in common: scikit-learn's contract over raw text."""

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mpad._version import __version__
from mpad.data.equal_texts import text_groups
from mpad.data.inputs import as_examples, as_seed, as_texts, as_validation, as_weights
from mpad.data.inspection import warn_of_labels, warn_of_leak
from mpad.data.labels import Labels, label_names, learn_labels
from mpad.errors import InputError
from mpad.estimator import warm_start
from mpad.estimator.held_out_scores import BASELINE, HeldOutScores, baseline_predictions, score_held_out
from mpad.estimator.hub_methods import HubMethods
from mpad.estimator.members import (
    NO_ROWS,
    TrainingData,
    as_long,
    checkpoint_key,
    documents,
    held_out_logits,
    make_tasks,
    trained_model,
)
from mpad.estimator.training_card import TrainingSummary, closing_lines, draw_history, read_history, training_card
from mpad.estimator.untrained import untrained_model
from mpad.linear.mixture import HeldOutFit
from mpad.network import Network
from mpad.pipeline.store import as_json, load_model, save_model
from mpad.pipeline.text_model import TextModel
from mpad.text.contextual import Transformer
from mpad.text.distilled import vector_sources
from mpad.text.tokenizer import AUTO, Tokenizer
from mpad.text.vocabulary import Vocabulary
from mpad.training.checkpoint import Checkpoint, open_checkpoint
from mpad.training.config import TrainingConfig
from mpad.training.device import find_device
from mpad.training.loop import History, train
from mpad.training.progress import Sink, epoch_bar, silent, wants_bar
from mpad.training.task import Task


class _Estimator(ClassNamePrefixFeaturesOutMixin, ClassifierMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """What scikit-learn's mixins add up to."""


class TextClassifier(HubMethods, _Estimator, ABC):
    """An estimator of a network over raw text; what stands here is the same for every network."""

    tokenizer: str | Tokenizer | Callable[[str], Iterable[str]]
    vectors: str | Path | Sequence[str | Path] | None
    vector_size: int
    extra_words: int
    min_count: int
    max_epochs: int | Literal["auto"]
    patience: int | Literal["auto"] | None
    batch_size: int | Literal["auto"]
    learning_rate: float | Literal["auto"]
    dropout: float
    validation_fraction: float
    class_weight: Mapping[Any, float] | Literal["balanced"] | None
    device: str
    card_: dict[str, Any]
    held_out_: HeldOutScores | None  # None: nothing was held out, or the model was loaded
    summary_: TrainingSummary | None
    known_words_: tuple[int, int] | None = None  # words of X that the word vectors know, of how many
    trained_on_: NDArray[np.uint32]  # checksums of the texts that weights were learnt from
    random_state: int | np.random.RandomState | None
    verbose: bool | Literal["auto"]

    @classmethod
    def check_extras(cls) -> None:
        """Networks need no extras; word vectors of the corpus do, and say so at once."""

    @abstractmethod
    def _make_network(self, n_classes: int, n_words: int, vector_width: int) -> Network:
        """An untrained network; its random weights may be drawn by torch's own generator."""

    @abstractmethod
    def _make_model(self, tokenizer: Tokenizer, vocabulary: Vocabulary, network: Network, labels: Labels) -> TextModel:
        """The network with all that it needs to read text."""

    @property
    @abstractmethod
    def _by_sentence(self) -> bool:
        """Whether documents are read as runs of sentences."""

    @abstractmethod
    def _training_config(self, seed: int, n_documents: int) -> TrainingConfig:
        """How to train on so many documents."""

    def fit(
        self,
        X: Iterable[str],
        y: Any,
        sample_weight: Any = None,
        *,
        validation: tuple[Iterable[str], Any] | None = None,
        refit: bool = False,
        sink: Sink | None = None,
        checkpoint: str | Path | None = None,
        resume: bool = False,
        keep_interrupted: bool = False,
    ) -> Self:
        """Train on texts X and labels y.

        Parameters
        ----------
        X : iterable of str
            The documents.
        y : array-like
            A label per document; for multi-label data, a list of labels each or a matrix of 0 and 1.
        sample_weight : array-like or None
            Weight of each document in the loss.
        validation : tuple of texts and labels, or None
            Held-out documents of your own, in place of a part of X. They are never trained on. They are used to choose
            the epoch (presets "paper" and "authors"), or to weigh network and linear part (preset "best"), to calibrate
            probabilities and multi-label thresholds, and for the scores in `held_out_`.
        refit : bool
            With `validation`: once the scores are known, train the model again on X and the validation documents
            together, for as many epochs. The scores in `held_out_` are those of the model before that.
        sink : callable or None
            Called with an `EpochReport` after every epoch.
        checkpoint : path or None
            A file that is written after every epoch.
        resume : bool
            Continue from the checkpoint, if there is one.
        keep_interrupted : bool
            On Ctrl-C stop training and keep the weights so far, instead of raising.

        Returns
        -------
        self

        """
        names = label_names(y)
        texts, y = as_examples(X, y)
        earlier = warm_start.earlier_model(self)
        labels = learn_labels(y, names) if earlier is None else warm_start.same_classes(earlier, y, names)
        warn_of_labels(labels, y)
        targets = labels.encode(y)
        weights = labels.weights(self.class_weight, targets) * as_weights(sample_weight, len(texts))
        held_out = None if validation is None else as_validation(validation, labels)
        if refit and held_out is None:
            raise InputError("refit trains again with the validation documents; pass some as validation")
        if checkpoint is not None and self._members > 1:
            raise InputError("a checkpoint is of one network; with several members, fit without one")
        saved = None if checkpoint is None else open_checkpoint(Path(checkpoint), resume)
        seed = as_seed(self.random_state) if saved is None else saved.seed
        device = find_device(self.device)
        model, packed = untrained_model(self, texts, labels, seed, also=held_out[0] if held_out else ())
        chosen, held = np.arange(len(texts)), None
        if held_out is not None:
            checked, truth = held_out
            held = np.arange(len(texts), len(texts) + len(checked))
            texts, targets = texts + checked, np.concatenate([targets, truth])
            weights = np.concatenate([weights, np.ones(len(checked), np.float32)])
            packed = model.pack(texts)
        groups = text_groups(texts)
        if held is not None:
            warn_of_leak(texts, groups, held)
        data = TrainingData(packed, model.tensors(packed, device), targets, weights, groups)
        seen = np.zeros(0, np.uint32) if earlier is None else self.trained_on_
        unseen = ~np.isin(warm_start.checksums(texts), seen)  # a score on others would be too high
        tasks = make_tasks(self, model, data, chosen, held, seed, earlier=earlier, unseen=unseen)
        kept = None
        if checkpoint is not None:
            kept = Checkpoint(Path(checkpoint), checkpoint_key(self._json_params(), model, data, tasks[0]), seed, saved)
        shown = sink is None and wants_bar(self.verbose)
        with self.progress_bar() if shown else nullcontext(sink or silent) as watching:
            histories = train(tasks, watching, keep_interrupted, kept)
        tasks = tasks[: len(histories)]  # fewer if training was interrupted
        whole, fitted = self._complete(model, data, tasks, seed, train_on_held=held is None)
        logits = held_out_logits(model, tasks, packed)[2] if fitted.logits is None else fitted.logits
        interrupted = len(histories) < self._members or any(history.interrupted for history in histories)
        if refit and not interrupted:
            everything = make_tasks(self, model, data, np.arange(len(texts)), NO_ROWS, seed, earlier=earlier)
            with self.progress_bar(show_accuracy=False) if shown else nullcontext(silent) as watching:
                train([as_long(*one) for one in zip(everything, histories, strict=True)], watching)
            whole = self._refit(whole, fitted, data, everything, seed)
        self._remember(whole, fitted, histories)
        self.interrupted_ |= interrupted
        splits = [(documents(task.examples), documents(task.validation)) for task in tasks]
        scored = np.unique(np.concatenate([tested for _, tested in splits]))
        baseline = baseline_predictions(texts, targets, splits, scored) if len(scored) else None
        self.held_out_ = score_held_out(whole.labels, logits, targets[scored], baseline, groups[scored])
        if baseline is not None:
            self.held_out_accuracy_[BASELINE] = float((baseline == targets[scored]).mean())
        trained = np.arange(len(texts)) if refit else np.unique(np.concatenate([rows for rows, _ in splits]))
        self.trained_on_ = np.union1d(seen, warm_start.checksums([texts[row] for row in trained]))
        self.card_ = training_card(self, len(texts) if refit or held is None else len(chosen), len(scored), histories)
        self.summary_ = TrainingSummary.of(labels, targets[chosen], groups[chosen])
        if shown:
            lines = [*closing_lines(self), "next: predict(texts), explain(text).show(), save(folder)"]
            sys.stderr.write("".join(f"{line}\n" for line in lines))
        return self

    def progress_bar(self, show_accuracy: bool | None = None) -> AbstractContextManager[Sink]:
        """Show the training that `fit` is about to begin; the loss only, if the network is one part of the model."""
        config = self._training_config(0, 0)
        accuracy = not self._wants_potentials if show_accuracy is None else show_accuracy
        return epoch_bar(self._members, accuracy, config.keep == "best")

    def partial_fit(self, X: Iterable[str], y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Adjust a fitted network to further documents: one epoch over them, at a tenth of the learning rate.

        It is meant for small updates of a model that was fitted on much data. It is no way to train from the beginning:
        the first call is `fit` on the first batch, and the vocabulary, the linear part and the weights of the parts
        stay those of that batch (docs/how-to/go-on.md). For data that comes in batches, call `fit` on all of it, or
        `fit_stream` if it does not fit into memory. The first call needs documents of every class.
        """
        if not hasattr(self, "model_"):
            warm_start.check_all_classes(y, classes)
            return self.fit(X, y, sample_weight)
        texts, y = as_examples(X, y)
        warm_start.partial_fit(self, texts, y, as_weights(sample_weight, len(texts)))
        return self

    @property
    def labels_(self) -> Labels:
        """The classes of the fitted model, in the order of its answers."""
        return self.model_.labels

    @property
    def _members(self) -> int:
        """Networks that are trained, and answer together."""
        return 1

    @property
    def _wants_potentials(self) -> bool:
        """Return whether a linear part is joined to the network."""
        return False

    def _complete(
        self, model: TextModel, data: TrainingData, tasks: Sequence[Task], seed: int, train_on_held: bool = True
    ) -> tuple[TextModel, HeldOutFit]:
        """Make the whole model from trained networks, and fit what is fitted on held-out documents.

        Without `train_on_held`, no part of the model is trained on documents that the networks were not trained on.
        """
        return trained_model(model, tasks), HeldOutFit()

    def _refit(
        self, model: TextModel, fitted: HeldOutFit, data: TrainingData, tasks: Sequence[Task], seed: int
    ) -> TextModel:
        """Replace all that was trained by what these networks and all documents give."""
        return trained_model(model, tasks)

    @property
    def _vector_sources(self) -> list[str | Path]:
        """Where word vectors come from; none where the network learns them."""
        return vector_sources(self.vectors)

    @property
    def _transformer(self) -> Transformer | None:
        """The transformer that features of nodes come from; None where they are word vectors."""
        return None

    @property
    def _learns_vectors(self) -> bool:
        return self._transformer is None and not self._vector_sources

    def _remember(self, model: TextModel, fitted: HeldOutFit, histories: Sequence[History]) -> None:
        self.model_, history = model, histories[0]
        self.classes_ = model.labels.classes
        self.history_ = history.reports
        self.best_epoch_ = history.best_epoch
        self.n_iter_ = len(history.reports)
        self.interrupted_ = any(each.interrupted for each in histories)
        self.held_out_ = None
        self.held_out_accuracy_ = dict(fitted.accuracies)
        self.answers_by_ = fitted.answers_by
        self.temperature_ = fitted.temperature
        self.card_ = {}
        self.summary_ = None
        self.trained_on_ = np.zeros(0, np.uint32)

    def decision_function(self, X: Iterable[str]) -> NDArray[np.float32]:
        """Scores before softmax or sigmoid: (n, n_classes); of two classes, the second's lead over the first: (n,)."""
        check_is_fitted(self)
        logits = self.model_.logits(as_texts(X))
        if self.labels_.n_scores == 1:
            return np.asarray(logits[:, 1] - logits[:, 0])
        return logits

    def predict_proba(self, X: Iterable[str], *, return_std: bool = False) -> Any:
        """Probability of each class: (n, n_classes).

        With `return_std` and several members, also the standard deviation of each over the members, how far another
        training would have come to another answer: (n, n_classes). Where the linear part answers alone, it is nothing.
        """
        check_is_fitted(self)
        texts = as_texts(X)
        probabilities = self.model_.probabilities(texts)
        return (probabilities, self.model_.member_probabilities(texts).std(0)) if return_std else probabilities

    def predict(self, X: Iterable[str], *, reject_below: float | None = None) -> NDArray[Any]:
        """Label of each document: (n,), or indicators (n, n_classes) for many labels a document.

        With `reject_below`, None instead of a label that has a lower probability than that.
        """
        check_is_fitted(self)
        logits, labels = self.model_.logits(as_texts(X)), self.model_.labels
        return labels.decide(logits) if reject_below is None else labels.decide_or_reject(logits, reject_below)

    def score(self, X: Iterable[str], y: Any, sample_weight: Any = None) -> float:
        """Share of documents that are right; of many labels a document, of those that are right in all labels."""
        check_is_fitted(self)
        return float(super().score(X, self.labels_.as_predicted(y), sample_weight))

    def transform(self, X: Iterable[str]) -> NDArray[np.float32]:
        """Vector of each document, as the last layer sees it: (n, width)."""
        check_is_fitted(self)
        return self.model_.vectors(as_texts(X))

    @property
    def _n_features_out(self) -> int:
        return int(self.model_.vectors([]).shape[1])

    def plot_history(self) -> Any:
        """Draw loss and held-out accuracy by epoch: a matplotlib figure."""
        check_is_fitted(self)
        return draw_history(self.history_)

    def save(self, folder: str | Path) -> None:
        """Write the fitted model to a folder: config.json, vocabulary.json, model.safetensors and their checksums.

        A model that is there is replaced, at once and whole. A folder that holds anything else is left alone.
        """
        check_is_fitted(self)
        facts = {"best_epoch_": self.best_epoch_, "history_": [asdict(report) for report in self.history_]}
        facts["trained_on_"] = warm_start.as_text(self.trained_on_)
        save_model(self.model_, {**self._json_params(), **facts}, self.card_, folder, __version__)

    def _json_params(self) -> dict[str, Any]:
        return {name: as_json(value) for name, value in self.get_params(deep=False).items()}

    @classmethod
    def load(
        cls,
        folder: str | Path,
        device: str = "auto",
        tokenizer: str | Tokenizer | Callable[[str], Iterable[str]] | None = None,
    ) -> Self:
        """Read a fitted model; `tokenizer` hands in the function that it was trained with, if that was not one of ours.

        A folder may come from anybody: nothing in it is run, and what does not hold together is refused.
        """
        model, files = load_model(folder, find_device(device), tokenizer)
        parameters = files.estimator()
        known = set(cls._get_param_names())
        estimator = cls(**{name: value for name, value in parameters.items() if name in known})
        if tokenizer is not None or estimator.tokenizer != AUTO:
            estimator.tokenizer = model.tokenizer.name if tokenizer is None else tokenizer
        best = parameters.get("best_epoch_", 0)
        reports = read_history(parameters.get("history_"))
        history = History(reports, best if type(best) is int else 0, interrupted=False)
        estimator._remember(model, HeldOutFit(), [history])
        estimator.card_, estimator.trained_on_ = files.card(), warm_start.from_text(parameters.get("trained_on_"))
        return estimator

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.classifier_tags.multi_label = True
        tags.non_deterministic = self.random_state is None
        return tags
