"""MPADClassifier, the estimator contract over raw text, and `fit` from top to bottom.

`TextClassifier.fit` is a ladder: read the documents, prepare the model (words, vectors, packed documents), make a task
for each network, train, complete the model on held-out documents, score it. Each rung is a function below the class, in
the order in which `fit` calls it. `MPADClassifier`, at the end, adds the network and the linear part.
"""

import copy
import os
import sys
import time
import warnings
from abc import ABC, abstractmethod
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self
from zlib import crc32

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted
from torch.overrides import TorchFunctionMode

from mpad._version import __version__
from mpad.config import (
    DEFAULT_PRESET,
    FEW_LABELS,
    FINE_TUNING,
    FINE_TUNING_DROPOUT,
    MOST_MEMBERS,
    MPADConfig,
    TrainingConfig,
    Variant,
    find_preset,
)
from mpad.data.equal_texts import text_groups
from mpad.data.inputs import (
    as_examples,
    as_labels,
    as_seed,
    as_texts,
    as_unlabeled,
    as_validation,
    as_weights,
    label_names,
)
from mpad.data.inspection import warn_of_labels, warn_of_leak, warn_of_words
from mpad.data.labels import Labels, fit_thresholds, learn_labels, rightness
from mpad.data.streams import Columns
from mpad.encoder.encoder import AUTO as AUTO_ENCODER
from mpad.encoder.encoder import Encoder, load_encoder
from mpad.encoder.start import (
    Start,
    choose_start,
    document_vectors,
    fit_last_layer,
    set_last_layer,
    start_from,
    update_last_layer,
)
from mpad.encoder.teachers import installed_teachers, teacher_vectors
from mpad.ensemble import Ensemble, scale_logits
from mpad.errors import DataWarning, InputError
from mpad.estimator.held_out_scores import BASELINE, HeldOutScores, baseline_predictions, score_held_out
from mpad.estimator.store import load_model, save_model
from mpad.estimator.training_card import (
    TrainingSummary,
    UnlabeledUse,
    closing_lines,
    draw_history,
    read_history,
    training_card,
)
from mpad.explain.explanation import DEFAULT, Explanation
from mpad.export.hub import fetch, upload
from mpad.graph.build import GraphConfig
from mpad.inference.pipeline import Pipeline
from mpad.linear.few import DESCRIPTION_WEIGHT, FewLabels, Unlabeled, fit_few_labels
from mpad.linear.fit import HeldOutFit, LinearData, cross_entropy, fit_all, fit_linear_part, fit_temperature
from mpad.model import MPAD
from mpad.network import Corpus, Network, find_device, to_device
from mpad.storage.model_folder import as_json
from mpad.text.contextual import WORDS, Transformer, as_transformer
from mpad.text.distilled import AUTO as AUTO_VECTORS
from mpad.text.distilled import vector_sources
from mpad.text.tokenizer import AUTO, Tokenizer, as_tokenizer
from mpad.text.vectors import WordVectors, make_vectors, random_rows, random_vectors
from mpad.text.vocabulary import Vocabulary, learn_vocabulary
from mpad.training.checkpoint import Checkpoint, fingerprint
from mpad.training.loop import History, train
from mpad.training.progress import EpochReport, Sink, epoch_bar, silent, wants_bar
from mpad.training.stream import StreamOptions
from mpad.training.task import Examples, Task, hold_out, make_examples

if TYPE_CHECKING:
    from mpad.estimator.decisions import Decisions
    from mpad.explain import Counterfactual

Rows = NDArray[np.int64]
Checksums = NDArray[np.uint32]
_NO_ROWS: Rows = np.zeros(0, np.int64)
_MOST_UNLABELED = 2_000  # texts without labels that are used; more take minutes
_FREE_AT_RESUME = ("max_epochs", "verbose", "device")  # what may differ from the training that a checkpoint is of


class _Estimator(ClassNamePrefixFeaturesOutMixin, ClassifierMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Sum of scikit-learn's mixins."""


class TextClassifier(_Estimator, ABC):
    """Estimator of a network over raw text: everything that does not depend on the network."""

    tokenizer: str | Tokenizer | Callable[[str], Iterable[str]]
    vectors: str | Path | Sequence[str | Path] | None
    vector_size: int
    extra_words: int
    min_count: int
    validation_fraction: float
    class_weight: Mapping[Any, float] | Literal["balanced"] | None
    device: str
    card_: dict[str, Any]
    held_out_: HeldOutScores | None  # None: nothing was held out, or the model was loaded
    summary_: TrainingSummary | None
    known_words_: tuple[int, int] | None = None  # words of X that the word vectors know, of how many
    start_: Start = Start(None)  # where training started
    unlabeled_: UnlabeledUse | None = None  # how texts without labels were used
    class_names_used_: int | None = None  # how many names of classes were used; None: there were none
    model_: Pipeline
    history_: list[EpochReport]
    trained_on_: NDArray[np.uint32]  # checksums of the texts that weights were trained on
    random_state: int | np.random.RandomState | None
    verbose: bool | Literal["auto"]

    @classmethod
    def check_extras(cls) -> None:
        """Check optional dependencies; networks need none."""

    @abstractmethod
    def _make_network(self, n_classes: int, n_words: int, vector_width: int) -> Network:
        """Return an untrained network; its random weights may be drawn by torch's own generator."""

    @abstractmethod
    def _make_model(self, tokenizer: Tokenizer, vocabulary: Vocabulary, network: Network, labels: Labels) -> Pipeline:
        """Return the network with everything it needs to read text."""

    @property
    @abstractmethod
    def _by_sentence(self) -> bool:
        """True if documents are read as sequences of sentences."""

    @abstractmethod
    def _training_config(self, seed: int, n_documents: int) -> TrainingConfig:
        """Return the training settings for a number of documents."""

    def fit(
        self,
        X: Iterable[str],
        y: Any,
        sample_weight: Any = None,
        *,
        validation: tuple[Iterable[str], Any] | None = None,
        unlabeled: Any = None,
        class_names: Mapping[Any, str] | None = None,
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
        unlabeled : iterable of str, or tuple of texts and probabilities, or None
            Further texts without labels, which help with fewer than 300 labeled documents. Sentence encoders that are
            installed (USE and MiniLM, by the extra "pretrain") learn the task from X and label up to 2,000 of the
            texts. Instead, or in addition, pass probabilities: a column per class, for example from a large language
            model. These labels are used only if the model is clearly better by cross-validation; see `unlabeled_`.
        class_names : mapping of labels to str, or None
            What the classes are, in words: {"1": "refund request"}. With fewer than 300 labeled documents, each name
            or description is read like a few documents of its class; the more labels there are, the less it counts.
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
        read = check_fit_input(self, X, y, sample_weight, validation, unlabeled, class_names)
        if refit and read.split.held_out is None:
            raise InputError("refit trains again with the validation documents; pass some as validation")
        if checkpoint is not None and self._members > 1:
            raise InputError("a checkpoint is of one network; with several members, fit without one")
        kept = None if checkpoint is None else Checkpoint(Path(checkpoint), resume)
        shown = sink is None and wants_bar(self.verbose)
        self._fit(read, None if shown else sink or silent, kept, refit, keep_interrupted)
        if shown:
            lines = [*closing_lines(self), "next: predict(texts), explain(text).show(), save(folder)"]
            sys.stderr.write("".join(f"{line}\n" for line in lines))
        return self

    def _fit(
        self, read: "FitInput", sink: Sink | None, checkpoint: Checkpoint | None, refit: bool, keep_interrupted: bool
    ) -> None:
        """Train, complete and score the model; without a sink, show progress bars."""
        self._report_further_texts(None)
        saved_seed = None if checkpoint is None else checkpoint.seed
        seed = as_seed(self.random_state) if saved_seed is None else saved_seed
        model, packed = untrained_model(self, read.texts, read.labels, seed, len(read.split.training))
        corpus = to_device(packed, find_device(self.device))
        data = TrainingData(packed, corpus, read.targets, read.weights, read.groups)
        if self._has_few_labels(len(read.split.training)):
            self._fit_few_labels(read, model, data, seed, refit, shown=sink is None)
            return
        if len(read.texts) > len(read.split.labeled):
            self._fit(read.labeled_only(), sink, checkpoint, refit, keep_interrupted)
            self._report_further_texts(read.split)
            return
        tasks = make_tasks(self, model, data, read.split, seed, first=model.network)
        if checkpoint is not None:
            checkpoint.belong_to(checkpoint_key(self._json_params(), model, data, tasks[0]), seed)
        with self.progress_bar() if sink is None else nullcontext(sink) as watching:
            histories = train(tasks, watching, keep_interrupted, checkpoint)
        tasks = tasks[: len(histories)]
        whole, fitted = self._complete(model, data, tasks, seed, train_on_held=read.split.held_out is None)
        logits = held_out_logits(model, tasks, data)[2] if fitted.logits is None else fitted.logits
        interrupted = len(histories) < self._members or any(history.interrupted for history in histories)
        refit = refit and not interrupted
        if refit:
            split = Split(np.arange(len(data.targets)), _NO_ROWS)
            everything = make_tasks(self, model, data, split, seed)
            with self.progress_bar(show_accuracy=False) if sink is None else nullcontext(silent) as watching:
                train([as_long(*one) for one in zip(everything, histories, strict=True)], watching)
            whole = self._refit(model, fitted, data, everything, seed)
        self._remember(whole, fitted, histories)
        self.interrupted_ = interrupted
        splits = [(documents_of(task.examples), documents_of(task.validation)) for task in tasks]
        self._score(read, splits, logits, histories, refit)

    def _report_further_texts(self, split: "Split | None", few: FewLabels | None = None) -> None:
        """Set how texts without labels and class names were used, if there are any; only with few labels they are."""
        self.unlabeled_ = self.class_names_used_ = None
        if split is not None and len(split.unlabeled):
            use = (None, {}) if few is None else (few.soft_by, few.tried)
            self.unlabeled_ = UnlabeledUse(len(split.unlabeled), *use)
        if split is not None and len(split.described):
            self.class_names_used_ = len(split.described) if few else 0

    def _has_few_labels(self, n_documents: int) -> bool:
        """Return whether to fit one regression on all documents, and leave the network as its encoder is."""
        return False

    def _fit_few_labels(
        self, read: "FitInput", model: Pipeline, data: "TrainingData", seed: int, refit: bool, shown: bool
    ) -> None:
        """Fit a regression next to the encoder, scored by cross-validation, or on the user's validation documents."""
        raise NotImplementedError

    def _score(
        self,
        read: "FitInput",
        splits: Sequence[tuple[Rows, Rows]],
        logits: NDArray[np.floating],
        histories: Sequence[History],
        refit: bool,
        folds: int = 0,
    ) -> None:
        """Compare the model with the baseline on documents that it was not trained on; remember the training."""
        scored = np.unique(np.concatenate([tested for _, tested in splits]))
        truth, groups = read.targets[scored], read.groups[scored]
        baseline = baseline_predictions(read.texts, read.targets, splits, scored) if len(scored) else None
        self.held_out_ = score_held_out(self.labels_, logits, truth, baseline, groups)
        if self.held_out_ is not None:
            self.held_out_ = replace(self.held_out_, folds=folds)
        if baseline is not None:
            self.held_out_accuracy_[BASELINE] = float((baseline == truth).mean())
        given = read.split.training
        trained = read.split.labeled if refit else np.unique(np.concatenate([rows for rows, _ in splits]))
        self.trained_on_ = np.union1d(read.seen, checksums([read.texts[row] for row in trained]))
        self.card_ = training_card(self, len(read.split.labeled) if refit else len(given), len(scored), histories)
        self.summary_ = TrainingSummary.of(read.labels, read.targets[given], read.groups[given])

    def progress_bar(self, show_accuracy: bool | None = None) -> AbstractContextManager[Sink]:
        """Show the training that `fit` is about to begin; the loss only, if the network is one part of the model."""
        config = self._training_config(0, 0)
        accuracy = not self._wants_potentials if show_accuracy is None else show_accuracy
        return epoch_bar(self._members, accuracy, config.keep == "best")

    def partial_fit(self, X: Iterable[str], y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Adjust a fitted model to further documents.

        If the network started from an encoder, its last layer is fitted to them, near its present weights, which count
        for as many documents as the model has seen. Otherwise the network is trained for one epoch at a tenth of the
        learning rate. It is meant for small updates: vocabulary, linear part and the weights of the parts stay those of
        the first call, which is `fit` on the first batch (docs/how-to/go-on.md). For data that comes in batches, call
        `fit` on all of it, or `fit_stream` if it does not fit into memory. The first call needs documents of every
        class.
        """
        if not hasattr(self, "model_"):
            check_all_classes(y, classes)
            return self.fit(X, y, sample_weight)
        if self._members > 1:
            raise InputError("partial_fit is for one network; with several members, fit again")
        texts, y = as_examples(X, y)
        model, history = train_further(self, texts, as_labels(y), as_weights(sample_weight, len(texts)))
        self.model_, epochs = model, len(self.history_) + 1
        self.history_ = [*self.history_, replace(history.reports[0], epoch=epochs, max_epochs=epochs)]
        self.best_epoch_ = self.n_iter_ = epochs
        self.trained_on_ = np.union1d(self.trained_on_, checksums(texts))
        return self

    def _earlier_model(self) -> Pipeline | None:
        """Return the model that a fit continues from: with `warm_start`, the fitted one."""
        if not getattr(self, "warm_start", False) or not hasattr(self, "model_"):
            return None
        if self._members > 1:
            raise InputError("warm_start is for one network; with several members, each fit starts again")
        if getattr(self.model_, "transformer", None) != self._transformer:
            raise InputError("training continues with the features it began with: set them, or warm_start=False")
        return self.model_

    @property
    def labels_(self) -> Labels:
        """Classes of the fitted model, in the order of its scores."""
        return self.model_.labels

    @property
    def _members(self) -> int:
        """Number of networks that are trained and averaged."""
        return 1

    @property
    def _wants_potentials(self) -> bool:
        """Return whether a linear part is joined to the network."""
        return False

    def _complete(
        self, model: Pipeline, data: "TrainingData", tasks: Sequence[Task], seed: int, train_on_held: bool = True
    ) -> tuple[Pipeline, HeldOutFit]:
        """Build the model from trained networks, and fit what is fitted on held-out documents.

        Without `train_on_held`, no part of the model is trained on documents that the networks were not trained on.
        """
        return trained_model(model, tasks), HeldOutFit()

    def _refit(
        self, model: Pipeline, fitted: HeldOutFit, data: "TrainingData", tasks: Sequence[Task], seed: int
    ) -> Pipeline:
        """Replace all that was trained by what these networks and all documents give."""
        return trained_model(model, tasks)

    @property
    def _vector_sources(self) -> list[str | Path]:
        """Sources of word vectors; none if the network learns them."""
        return vector_sources(self.vectors)

    @property
    def _transformer(self) -> Transformer | None:
        """Transformer that node features come from; None if they are word vectors."""
        return None

    @property
    def _learns_vectors(self) -> bool:
        return self._transformer is None and self.encoder_ is None and not self._vector_sources

    @property
    def encoder_(self) -> Encoder | None:
        """The encoder that training started from; None if it started from random weights, or the model was loaded."""
        return self.start_.encoder

    def _set_encoder(self, words: Sequence[str], counts: NDArray[np.integer], earlier: Pipeline | None = None) -> None:
        """Choose where training starts, given the words of the documents and how often each occurs."""
        self.start_ = Start(None)

    def _remember(self, model: Pipeline, fitted: HeldOutFit, histories: Sequence[History]) -> None:
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
        """Return scores before softmax or sigmoid: (n, n_classes); two classes have one column less: (n,)."""
        check_is_fitted(self)
        logits = self.model_.logits(as_texts(X))
        if self.labels_.n_scores == 1:
            return np.asarray(logits[:, 1] - logits[:, 0])
        return logits

    def predict_proba(self, X: Iterable[str], *, return_std: bool = False) -> Any:
        """Return the probability of each class: (n, n_classes).

        With `return_std` and several members, also return the standard deviation over the members (n, n_classes): how
        much another training would change the prediction. It is 0 if the linear part predicts alone.
        """
        check_is_fitted(self)
        texts = as_texts(X)
        probabilities = self.model_.predict_proba(texts)
        return (probabilities, self.model_.member_probabilities(texts).std(0)) if return_std else probabilities

    def predict(self, X: Iterable[str], *, reject_below: float | None = None) -> NDArray[Any]:
        """Return the label of each document: (n,), or indicators (n, n_classes) for multi-label data.

        With `reject_below`, the label is None if its probability is lower than that.
        """
        check_is_fitted(self)
        logits, labels = self.model_.logits(as_texts(X)), self.model_.labels
        return labels.decide(logits) if reject_below is None else labels.decide_or_reject(logits, reject_below)

    def choose_thresholds(
        self,
        X: Iterable[str],
        y: Any,
        *,
        precision: float | None = None,
        recall: float | None = None,
        costs: NDArray[np.floating] | None = None,
        only: Sequence[Any] | None = None,
    ) -> "Decisions":
        """Choose when to decide for a class, on held-out documents; the model keeps it, and `predict` follows it.

        Parameters
        ----------
        X, y
            Documents that the model was not trained on, and their labels.
        precision : float, optional
            Least share of correct decisions for each class. Documents below are undecided: `predict` returns None.
        recall : float, optional
            Least share of the documents of each class to find; rare classes are preferred as far as needed.
        costs : ndarray of shape (n_classes, n_classes) or (n_classes, n_classes + 1), optional
            Cost of deciding for a class (column) if another one is true (row), in the order of `classes_`; a further
            column is the cost of being undecided.
        only : sequence, optional
            Classes that the goals are for; by default all.

        Returns
        -------
        Decisions
            Coverage, accuracy, and precision and recall of each class on these documents.

        Examples
        --------
        >>> model.choose_thresholds(texts, labels, precision=0.95).coverage         # doctest: +SKIP

        """
        from mpad.estimator.decisions import choose_decisions  # here: most never need it

        check_is_fitted(self)
        texts, y = as_examples(X, y)
        trained = int(np.isin(checksums(texts), self.trained_on_).sum())
        if trained:
            message = (
                f"the model was trained on {trained:,} of these {len(texts):,} documents: thresholds will be too low"
            )
            warnings.warn(message, DataWarning, stacklevel=2)
        targets, probabilities = self.labels_.encode(y), self.model_.predict_proba(texts)
        goals: dict[str, Any] = {"precision": precision, "recall": recall, "costs": costs, "only": only}
        decisions = choose_decisions(self.labels_, probabilities, targets, **goals)
        self.model_ = replace(self.model_, labels=decisions.labels)
        return decisions

    def score(self, X: Iterable[str], y: Any, sample_weight: Any = None) -> float:
        """Return the share of correct documents; for multi-label data, of those correct in all labels."""
        check_is_fitted(self)
        return float(super().score(X, self.labels_.as_predicted(y), sample_weight))

    def transform(self, X: Iterable[str]) -> NDArray[np.float32]:
        """Return the vector of each document, as the last layer sees it: (n, width)."""
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

        An existing model is replaced atomically. A folder that holds anything else is left alone.
        """
        check_is_fitted(self)
        facts = {"best_epoch_": self.best_epoch_, "history_": [asdict(report) for report in self.history_]}
        facts["trained_on_"] = encode_checksums(self.trained_on_)
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
        """Load a fitted model; pass `tokenizer` if it was trained with a function of your own.

        A folder may come from anybody: nothing in it is executed, and inconsistent content is refused.
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
        estimator.card_, estimator.trained_on_ = files.card(), decode_checksums(parameters.get("trained_on_"))
        return estimator

    def push_to_hub(
        self, repo_id: str, *, private: bool | None = None, token: str | None = None, message: str | None = None
    ) -> str:
        """Upload the fitted model with a model card to a repository of the Hugging Face Hub; return its address.

        The repository is created if it does not exist. Needs the extra `hub`.
        """
        with TemporaryDirectory() as temporary:
            folder = Path(temporary) / "model"
            self.save(folder)
            return upload(folder, repo_id, private, token, message)

    @classmethod
    def from_pretrained(
        cls,
        name: str | Path,
        *,
        revision: str | None = None,
        token: str | None = None,
        cache_dir: str | Path | None = None,
        device: str = "auto",
        tokenizer: str | Tokenizer | Callable[[str], Iterable[str]] | None = None,
    ) -> Self:
        """Load a model from a local folder, or download it from the repository of that name.

        A repository needs the extra `hub`; `revision` names a branch, a tag or, to always get the same, a commit.
        """
        loaded: Self = cls.load(fetch(name, revision, token, cache_dir), device, tokenizer)
        return loaded

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.classifier_tags.multi_label = True
        tags.non_deterministic = self.random_state is None
        return tags


# ── The input of `fit` ──


class Split(NamedTuple):
    """Rows of a corpus: how each document is used."""

    training: Rows
    held_out: Rows | None  # None: a part of those to train on
    watched: Rows | None = None  # their accuracy is reported after every epoch
    unseen: NDArray[np.bool_] | None = None  # (documents,), the only ones to hold out; None: all
    unlabeled: Rows = _NO_ROWS
    described: Rows = _NO_ROWS  # names or descriptions of classes

    @property
    def labeled(self) -> Rows:
        """Rows with labels."""
        return self.training if self.held_out is None else np.concatenate([self.training, self.held_out])


class FitInput(NamedTuple):
    """Checked input of `fit`: documents to train on, validation documents, texts without labels, names of classes."""

    texts: list[str]
    labels: Labels
    targets: NDArray[Any]  # (documents,) class numbers, or (documents, classes) indicators
    weights: NDArray[np.float32]  # (documents,)
    groups: Rows  # (documents,), the same for equal texts, which no split separates
    split: Split
    seen: Checksums  # of the texts that an earlier fit was trained on
    soft_labels: NDArray[np.float64] | None = None  # (documents without labels, classes), by the user

    def labeled_only(self) -> "FitInput":
        """Return the documents with labels only."""
        n = len(self.split.labeled)
        targets, weights, groups = self.targets[:n], self.weights[:n], self.groups[:n]
        split = self.split._replace(unlabeled=_NO_ROWS, described=_NO_ROWS)
        return FitInput(self.texts[:n], self.labels, targets, weights, groups, split, self.seen)

    def followed_by(self, texts: Sequence[str], targets: NDArray[Any], weight: float) -> tuple["FitInput", Rows]:
        """Return the input with further texts, and their rows."""
        n, more = len(self.texts), len(texts)
        longer = self._replace(
            texts=[*self.texts, *texts],
            targets=np.concatenate([self.targets, targets.astype(self.targets.dtype)]),
            weights=np.concatenate([self.weights, np.full(more, weight, np.float32)]),
            groups=text_groups([*self.texts, *texts]),
        )
        return longer, np.arange(n, n + more)


def check_fit_input(
    estimator: TextClassifier,
    X: Iterable[str],
    y: Any,
    sample_weight: Any,
    validation: tuple[Iterable[str], Any] | None,
    unlabeled: Any = None,
    class_names: Mapping[Any, str] | None = None,
) -> FitInput:
    """Check the input of `fit`, and warn of suspicious labels and copies."""
    names = label_names(y)
    texts, y = as_examples(X, y)
    earlier = estimator._earlier_model()
    labels = learn_labels(y, names) if earlier is None else same_classes(earlier, y, names)
    warn_of_labels(labels, y)
    targets = labels.encode(y)
    weights = labels.weights(estimator.class_weight, targets) * as_weights(sample_weight, len(texts))
    checked: list[str] = []
    if validation is not None:
        checked, truth = as_validation(validation)
        targets = np.concatenate([targets, labels.encode(truth)])
    weights = np.concatenate([weights, np.ones(len(checked), np.float32)])
    training, everything = np.arange(len(texts)), [*texts, *checked]
    held_out, groups = np.arange(len(texts), len(everything)) if checked else None, text_groups(everything)
    if held_out is not None:
        warn_of_leak(everything, groups, held_out)
    seen = np.zeros(0, np.uint32) if earlier is None else estimator.trained_on_
    # A score on documents that an earlier fit was trained on would be too high.
    split = Split(training, held_out, unseen=None if earlier is None else ~np.isin(checksums(texts), seen))
    read = FitInput(everything, labels, targets, weights, groups, split, seen)
    if labels.multilabel and (unlabeled is not None or class_names is not None):
        raise InputError("unlabeled and class_names are for one label per document, not for several: leave them out")
    read = read if unlabeled is None else _with_unlabeled(read, unlabeled)
    return read if class_names is None else _with_class_names(read, class_names)


def _with_unlabeled(read: FitInput, unlabeled: Any) -> FitInput:
    """Add texts without labels, except copies of each other and of documents with labels."""
    texts, given = as_unlabeled(unlabeled, read.labels.classes.tolist())
    n = len(read.texts)
    firsts = np.unique(text_groups([*read.texts, *texts]), return_index=True)[1]
    chosen = np.sort(np.random.default_rng(n).permutation(firsts[firsts >= n] - n)[:_MOST_UNLABELED])
    if not len(chosen):
        raise InputError("none of the unlabeled texts is new: each is a copy of a document with a label")
    read, rows = read.followed_by([texts[k] for k in chosen], np.zeros(len(chosen)), weight=0)
    return read._replace(
        split=read.split._replace(unlabeled=rows), soft_labels=None if given is None else given[chosen]
    )


def _with_class_names(read: FitInput, class_names: Mapping[Any, str]) -> FitInput:
    """Add the name or description of each class as a text of this class."""
    if not isinstance(class_names, Mapping):
        raise InputError(f"class_names must be a dict from label to text, not {type(class_names).__name__}")
    wrong = [label for label, text in class_names.items() if not isinstance(text, str) or not text.strip()]
    if wrong:
        raise InputError(f"class_names must hold a text for each label; that of '{wrong[0]}' is none")
    numbers = {str(name): number for number, name in enumerate(read.labels.classes.tolist())}
    unknown = [str(name) for name in class_names if str(name) not in numbers]
    if unknown:
        raise InputError(f"class_names: no document has the label '{unknown[0]}' (known: {', '.join(numbers)})")
    texts = as_texts(list(class_names.values()))
    targets = np.array([numbers[str(name)] for name in class_names])
    read, rows = read.followed_by(texts, targets, weight=DESCRIPTION_WEIGHT)
    return read._replace(split=read.split._replace(described=rows))


def same_classes(model: Pipeline, y: NDArray[Any], names: Sequence[str] | None = None) -> Labels:
    """Return the model's labels; raise if y has a class that it does not know."""
    known = model.labels.classes.tolist()
    if model.labels.multilabel and y.ndim == 2:
        new = sorted(set(names or known) - set(known))
    elif model.labels.multilabel:
        new = sorted({str(label) for row in y for label in row if label not in known})
    else:
        new = sorted({str(label) for label in y.tolist() if label not in known})
    if new:
        raise InputError(
            f"cannot add classes when continuing training: {', '.join(new[:5])} (the model has "
            f"{', '.join(map(str, known))}); fit a new model on all documents (mpad fit --anew)"
        )
    return model.labels


# ── The untrained model: words, their vectors, a network's first weights ──


def untrained_model(
    estimator: TextClassifier, texts: list[str], labels: Labels, seed: int, n_training: int | None = None,
    vectors_from: Rows | None = None,
) -> tuple[Pipeline, Any]:  # fmt: skip
    """Return an untrained model that can read these texts, and the packed texts.

    The vocabulary is that of the first `n_training` texts. Words of the others (validation documents) get vectors too,
    unless vectors are learned. Vectors of the corpus are learned from the rows `vectors_from`, by default from the
    first `n_training` texts.
    """
    earlier, learned_from = estimator._earlier_model(), texts[:n_training]
    tokenizer = as_tokenizer(estimator.tokenizer, learned_from) if earlier is None else earlier.tokenizer
    vocabulary, corpus = learn_vocabulary(learned_from, tokenizer, estimator._by_sentence, estimator.min_count)
    warn_of_words(learned_from, corpus, tokenizer)
    counts = np.bincount(corpus.ids, minlength=len(vocabulary))[: len(vocabulary)]
    estimator._set_encoder(vocabulary.words, counts, earlier)
    n_learned, others = len(vocabulary), texts[len(learned_from) :]
    if others and not estimator._learns_vectors:
        vocabulary = vocabulary.with_words(learn_vocabulary(others, tokenizer)[0].words)
    source = learned_from if vectors_from is None else [texts[row] for row in vectors_from]
    model = model_of_words(estimator, tokenizer, vocabulary, labels, seed, source)
    if others:
        return model, model.pack(texts)
    return model, model.packed(corpus.shift_spare_rows(n_learned, len(model.vocabulary)), texts)


def model_of_words(
    estimator: TextClassifier,
    tokenizer: Tokenizer,
    vocabulary: Vocabulary,
    labels: Labels,
    seed: int,
    texts: list[str],
) -> Pipeline:
    """Return an untrained model that knows these words, and those that its vectors add."""
    vectors = _word_vectors(estimator, texts, tokenizer, vocabulary, seed)
    by_vectors = not estimator._learns_vectors and estimator._transformer is None
    estimator.known_words_ = (vectors.covered, len(vocabulary)) if by_vectors else None
    network = untrained_network(estimator, len(labels), len(vectors.rows), vectors.width, seed)
    rows = torch.from_numpy(vectors.rows)  # rounded as they will be saved: a loaded model gives the same answers
    network.set_vectors(rows if network.config.learn_vectors else rows.half().float())
    return estimator._make_model(tokenizer, vectors.vocabulary, network, labels)


def untrained_network(estimator: TextClassifier, n_classes: int, n_words: int, vector_width: int, seed: int) -> Network:
    """Return a network with random weights, or those of its encoder, and empty word vectors."""
    with _Seeded(seed):
        network = estimator._make_network(n_classes, n_words, vector_width)
    if estimator.encoder_ is not None:
        start_from(network, estimator.encoder_)
    return network


def _word_vectors(
    estimator: TextClassifier, texts: list[str], tokenizer: Tokenizer, vocabulary: Vocabulary, seed: int
) -> WordVectors:
    if estimator._transformer is not None:  # a node has features of its own
        return WordVectors(vocabulary, np.zeros((0, estimator._transformer.width), np.float32), covered=0)
    if estimator.encoder_ is not None:
        return estimator.encoder_.word_vectors(vocabulary, estimator.extra_words)
    sources, width = estimator._vector_sources, estimator.vector_size
    if not sources:
        return random_vectors(vocabulary, width, seed)
    # These are the same for every seed, so that models can share them.
    return make_vectors(sources, texts, tokenizer, vocabulary, width, estimator.extra_words)


class _Seeded(TorchFunctionMode):
    """Draw this thread's random numbers from a generator of its own, because threads share torch's global one."""

    _DRAWS = frozenset(
        "uniform_ normal_ bernoulli_ random_ rand randn randint randperm trunc_normal_ orthogonal_ "
        "kaiming_uniform_ kaiming_normal_ xavier_uniform_ xavier_normal_".split()
    )

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._generator = torch.Generator().manual_seed(seed)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if getattr(func, "__name__", "") in self._DRAWS and kwargs.get("generator") is None:
            kwargs["generator"] = self._generator
        return func(*args, **kwargs)


def check_memory(numbers: int) -> None:
    """Refuse a network that does not fit into memory: weights, gradients and Adam's two moments, four bytes each."""
    needed = 16 * numbers
    available = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else needed
    if needed > available:
        raise InputError(
            f"this network has {numbers:,} parameters, word vectors included, and takes {needed / 1e9:,.0f} GB to "
            f"train; this machine has {available / 1e9:,.0f} GB: lower hidden, or raise min_count for fewer vectors"
        )


# ── A task for each network ──


@dataclass(frozen=True)
class TrainingData:
    """Documents as networks read them, with targets and weights."""

    packed: Any
    corpus: Corpus  # the same on a device
    targets: NDArray[Any]  # (documents,) class numbers, or (documents, classes) indicators
    weights: NDArray[np.float32]  # (documents,)
    groups: Rows | None = None  # (documents,), the same for equal texts, which no split separates


def make_tasks(
    estimator: TextClassifier,
    model: Pipeline,
    data: TrainingData,
    split: Split,
    seed: int,
    first: Network | None = None,
) -> list[Task]:
    """Return a task per member. Every member has its own weights, order of documents, dropout and held-out part.

    `first` is an untrained network of this seed for the first member, where there is one already. With `warm_start`,
    networks start from the fitted weights.
    """
    n_rows, width = model.network.vectors.shape
    earlier, device, tasks = estimator._earlier_model(), data.corpus.device, []
    vectors = model.network.vectors.detach().to(device)
    for number, own in enumerate(_seeds(seed, estimator._members)):
        network = None if number else first
        network = (network or untrained_network(estimator, len(model.labels), n_rows, width, own)).to(device)
        if estimator._learns_vectors:  # each member starts from its own random rows
            vectors = torch.from_numpy(random_rows(n_rows, width, own)).to(device)
        network.set_vectors(vectors)
        if earlier is not None:
            copy_weights(network, model.vocabulary, earlier)
        training, held = split.training, split.held_out
        if held is None:
            among = None if split.unseen is None else split.unseen[training]
            groups = None if data.groups is None else data.groups[training]
            parts = hold_out(data.targets[training], estimator.validation_fraction, own, among, groups)
            training, held = (split.training[part] for part in parts)
        watched = None if split.watched is None else make_examples(data.corpus, split.watched, data.targets)
        checked = make_examples(data.corpus, held, data.targets) if len(held) else None
        examples = make_examples(data.corpus, training, data.targets, data.weights)
        if estimator.encoder_ is not None and earlier is None and isinstance(network, MPAD):
            fit_last_layer(network, estimator.encoder_, examples)
        config = estimator._training_config(own, len(split.training))
        tasks.append(Task(network, examples, checked, config, watched))
    return tasks


def _seeds(seed: int, members: int) -> list[int]:
    """Return a seed per member; the first is that of a model with one member."""
    others = np.random.default_rng([seed, 1]).integers(2**31 - 1, size=members - 1)
    return [seed, *others.tolist()]


def copy_weights(network: Network, vocabulary: Vocabulary, earlier: Pipeline) -> None:
    """Start from another model's weights; learned word vectors, from the rows of the words that it knows."""
    state = {name: tensor for name, tensor in earlier.network.state_dict().items() if name != "vectors"}
    own = {name: tensor.shape for name, tensor in network.state_dict().items() if name != "vectors"}
    same_width = network.vectors.shape[1] == earlier.network.vectors.shape[1]
    if own != {name: tensor.shape for name, tensor in state.items()} or not same_width:
        raise InputError(
            "the model to continue from has another shape (steps, hidden, preset or word vectors): "
            "set them as they were, or start again with warm_start=False"
        )
    network.load_state_dict(state, strict=False)
    if isinstance(network.vectors, torch.nn.Parameter):
        rows = [(row, earlier.vocabulary.id(word)) for row, word in enumerate(vocabulary.words)]
        known = torch.tensor([pair for pair in rows if pair[1] < len(earlier.vocabulary)]).reshape(-1, 2)
        with torch.no_grad():
            network.vectors[known[:, 0]] = earlier.network.vectors.detach().to(network.vectors.device)[known[:, 1]]


def checkpoint_key(parameters: Mapping[str, Any], model: Pipeline, data: TrainingData, task: Task) -> str:
    """Return a digest of what a checkpoint belongs to: packed documents, first weights, settings."""
    settings = {name: value for name, value in parameters.items() if name not in _FREE_AT_RESUME}
    arrays = {name: value for name, value in vars(data.packed).items() if isinstance(value, np.ndarray)}
    arrays |= {"y": data.targets, "w": data.weights, "held": documents_of(task.validation)}
    arrays |= {name: value.cpu().numpy() for name, value in model.network.state_dict().items()}
    arrays["vectors"] = model.network.vectors.detach().cpu().numpy()
    return fingerprint([__version__, settings, list(model.vocabulary.words)], arrays)


def as_long(task: Task, history: History) -> Task:
    """Return a task that trains for as many epochs as an earlier training kept, and keeps the last."""
    epochs = max(history.best_epoch, 1)
    return replace(task, config=replace(task.config, max_epochs=epochs, patience=None, keep="last"))


# ── The trained model ──


def trained_model(model: Pipeline, tasks: Sequence[Task]) -> Pipeline:
    """Return the model with the trained networks in place of its untrained one."""
    networks = [task.network for task in tasks]
    if len(networks) == 1:
        return model.with_network(networks[0])
    return model.with_network(Ensemble.of([network for network in networks if isinstance(network, MPAD)]))


def held_out_logits(
    model: Pipeline, tasks: Sequence[Task], data: TrainingData
) -> tuple[Rows, Rows, NDArray[np.floating]]:
    """Return the documents that every member has seen, the others, and the members' mean logits for the others."""
    parts = [(documents_of(task.examples), documents_of(task.validation)) for task in tasks]
    n = len(data.targets)
    total, counts, used = np.zeros((n, len(model.labels)), np.float32), np.zeros(n, np.int64), np.zeros(n, bool)
    for task, (training, held) in zip(tasks, parts, strict=True):
        total[held] += task.network.logits(data.corpus, held)
        counts[held] += 1
        used[training] = used[held] = True
    held = np.flatnonzero(counts)
    seen = np.flatnonzero(used & (counts == 0))
    return np.asarray(seen, np.int64), np.asarray(held, np.int64), np.asarray(total[held] / counts[held, None])


def documents_of(examples: Examples | None) -> Rows:
    """Return the rows of some examples."""
    return np.zeros(0, np.int64) if examples is None else examples.documents.cpu().numpy()


# ── Continuing from a fitted model ──


def train_further(
    estimator: TextClassifier, texts: list[str], labels: NDArray[Any], weights: NDArray[np.float32]
) -> tuple[Pipeline, History]:
    """Adjust the fitted network to further documents: its last layer, or by an epoch at a tenth of the rate."""
    model = estimator.model_
    targets = same_classes(model, labels).encode(labels)
    weights = weights * model.labels.weights(estimator.class_weight, targets)
    packed = model.pack(texts)
    if isinstance(model.network, MPAD) and model.network.config.read_words and not model.network.config.hierarchical:
        return refit_last_layer(estimator, model, packed, targets, weights)
    trained: Network = model.network
    network = type(trained)(trained.config).to(trained.device)
    network.set_vectors(trained.vectors if (rows := trained.rows_for(packed)) is None else rows)
    network.load_state_dict(trained.state_dict(), strict=False)
    seed = len(estimator.history_)  # another order of documents each time
    config = estimator._training_config(seed, len(texts))
    config = replace(config, max_epochs=1, patience=None, schedule="constant", keep="last")
    config = replace(config, learning_rate=config.learning_rate / 10)
    chosen = np.arange(len(texts))
    examples = make_examples(to_device(packed, trained.device), chosen, targets, weights)
    (history,) = train([Task(network, examples, None, config)])
    network.set_vectors(network.vectors if trained.config.learn_vectors else trained.vectors)
    return model.with_network(network.eval()), history


def refit_last_layer(
    estimator: TextClassifier, model: Pipeline, packed: Any, targets: NDArray[Any], weights: NDArray[np.float32]
) -> tuple[Pipeline, History]:
    """Adjust the last layer of a network that started from an encoder, as much as it has seen few documents before."""
    start = time.perf_counter()
    encoder = estimator.encoder_ or load_encoder(getattr(estimator, "encoder", None) or AUTO_ENCODER)
    network = copy.deepcopy(model.network)
    share = 1.0 if model.potentials is None else float(model.potentials.network)
    if share > 0:  # otherwise the linear part predicts alone
        update_last_layer(network, encoder, model.answer(packed), share, targets, weights, len(estimator.trained_on_))
    model = model.with_network(network)
    logits = np.asarray(model.answer(packed).logits, np.float64)
    loss, right = cross_entropy(logits, targets)[0] / max(len(targets), 1), float(rightness(logits, targets).mean())
    report = EpochReport(1, 1, loss, loss, right, time.perf_counter() - start, True)
    return model, History([report], 1, interrupted=False)


def check_all_classes(y: Any, classes: Any) -> None:
    """Refuse a first call of `partial_fit` that lacks documents of some class."""
    if classes is None:
        return
    missing = sorted(set(map(str, classes)) - set(map(str, learn_labels(as_labels(y)).classes.tolist())))
    if missing:
        raise InputError(f"the first call of partial_fit needs documents of every class; there are none of {missing}")


def checksums(texts: Sequence[str]) -> Checksums:
    """Return a checksum per text: (n,)."""
    return np.array([crc32(text.encode("utf-8", "surrogatepass")) for text in texts], np.uint32)


def encode_checksums(seen: Checksums) -> str:
    """Return checksums as a model folder stores them."""
    return b64encode(np.unique(seen).astype("<u4").tobytes()).decode("ascii")


def decode_checksums(saved: Any) -> Checksums:
    """Read what `encode_checksums` wrote; anything else gives none."""
    try:
        return np.frombuffer(b64decode(saved, validate=True), "<u4").astype(np.uint32)
    except (TypeError, ValueError):
        return np.zeros(0, np.uint32)


# ── MPAD ──


class MPADClassifier(TextClassifier):
    """Document classifier: message passing over graphs of words, joined with a linear n-gram model.

    Parameters
    ----------
    variant : {"mpad", "sentence-att", "clique", "path"}, default="mpad"
        One graph per document, or one graph per sentence and a network over the sentences.
    preset : {"best", "paper", "authors"}, default="best"
        What does best on validation data, the paper's equations, or the network of the authors' published code.
    encoder : str, path or None, default="auto"
        Pretrained network to start from. "auto": the English one that ships with mpad, if it knows most words of the
        documents and `vectors`, `features` and the network's settings are the defaults. The folder of another, from
        `mpad pretrain`. None ("none" on the command line): random weights.
    steps : int or "auto", default="auto"
        Rounds of message passing at each level; by default the encoder's, or 2.
    hidden : int or "auto", default="auto"
        Width of node states; by default the encoder's, or 64.
    window : int, default=2
        Words are linked if they are less than this many positions apart.
    directed : bool, default=True
        Edges follow the order of the words.
    weighting : {"count", "distance"}, default="count"
        What a co-occurrence adds to an edge: 1, or 1 / distance.
    master_node : bool, default=True
        Link a master node to all words.
    master_skip : bool, default=True
        The master node's state bypasses attention.
    renormalise : bool, default=True
        Average over neighbors instead of summing.
    combine : {"gru", "identity"}, default="gru"
        "identity": a node's new state is its message.
    potentials : bool or "auto", default="auto"
        Join a linear n-gram model: a score for each word and word pair. "auto": as the preset says.
    members : int, default=1
        Networks that are trained separately, each with its own held-out part, and averaged. How far they differ says
        how certain a prediction is: `predict_proba(X, return_std=True)`.
    tokenizer : str or callable, default="auto"
        "auto" chooses by the letters of the documents: "kim" (the paper's, for ASCII) or "unicode-punctuation" (every
        script, emoji). Or one of these, "kim-cased", "unicode" (without commas and parentheses), or a function from a
        text to its words, which the name "module:function" can stand for.
    vectors : str, path, list of these, or None, default="auto"
        "auto": distilled from an installed sentence transformer (the extra "vectors"), otherwise learned. The name or
        folder of a Model2Vec or sentence-transformers model; a file of word vectors; "corpus": word2vec trained on X;
        several, concatenated; None: learned with the network.
    features : str or path, default="words"
        First state of a node. "words": the word's vector. "minilm", or the folder of a sentence transformer: the mean
        of the word's states in it, per document or sentence; slower by orders of magnitude, and not saved.
    vector_size : int, default=100
        Width of vectors that are learned or trained on X.
    extra_words : int, default=50000
        Words, or pieces of words, beyond those of X that the model keeps for new documents.
    min_count : int, default=1
        Words of X seen less often share the rows of unknown words.
    max_epochs : int or "auto", default="auto"
        Maximal number of epochs; by default that of the preset. With 0 the encoder stays as it is, and one regression
        over TF-IDF and its outputs is fitted on all of X: faster, less accurate, and harder to mislead by wrong labels.
    patience : int, None or "auto", default="auto"
        Epochs without a better validation accuracy before stopping; by default that of the preset. None never stops.
    batch_size : int or "auto", default="auto"
        Documents per training step; by default that of the preset.
    learning_rate : float or "auto", default="auto"
        Learning rate of Adam; by default that of the preset.
    dropout : float or "auto", default="auto"
        Share of activations that are dropped in training; by default 0.2 with an encoder, otherwise 0.5.
    validation_fraction : float, default=0.1
        Share of X that is held out from the network. The default preset weights network and linear part on these
        documents, calibrates the probabilities with them, and then trains the linear part on them too; it chooses no
        epoch with them. The presets "paper" and "authors" choose the best epoch with them. Copies of a text are never
        split. With 0 nothing is held out: the parts have their usual weights, and the epoch that is best on X is kept.
        With an encoder and fewer than 300 documents nothing is held out either: unless you set training options, one
        regression over TF-IDF and the encoder's outputs is fitted on all of X and scored by five-fold cross-validation.
    class_weight : None, "balanced" or dict, default=None
        Weight of each label in the loss.
    device : str, default="auto"
        "auto", or a torch device such as "cpu" or "cuda".
    random_state : int, RandomState or None, default=None
        An int makes results repeat, to the last bit on a CPU with the same number of threads; on a GPU sums may differ
        in their last digits.
    warm_start : bool, default=False
        Another `fit` continues from the fitted weights. Classes stay the same, and documents that the weights were
        trained on are not held out again.
    verbose : bool or "auto", default="auto"
        Show a progress bar (one line per epoch if there is no terminal), then the accuracies on held-out documents.
        "auto": on terminals and in notebooks.

    Attributes
    ----------
    classes_ : ndarray
        The labels, in the order of the columns of `predict_proba`.
    history_ : list
        One report per epoch.
    best_epoch_ : int
        The epoch whose weights were kept.
    n_iter_ : int
        Epochs run.
    held_out_ : HeldOutScores or None
        Scores on held-out documents, with intervals and the baselines; None if nothing was held out.
    held_out_accuracy_ : dict
        Accuracy on held-out documents of the model ("mpad"), of the baseline ("tfidf-svm", trained on the same
        documents as the network), and of the parts of a model with a linear part ("ngram-svm", "ngram-stack"). For
        multi-label data: the share of correct single decisions.
    class_names_used_ : int or None
        How many names of classes were used; 0 if there were too many labels for that, None if none were given.
    unlabeled_ : UnlabeledUse or None
        How texts without labels were used: `used`, `documents`, and the cross-validated accuracies that decided.
    answers_by_ : str
        "mpad", or the part ("ngram-svm", "ngram-stack") that predicts alone because it is clearly better on held-out
        documents.

    """

    def __init__(
        self,
        variant: Variant = "mpad",
        *,
        preset: str = DEFAULT_PRESET,
        encoder: str | Path | None = AUTO_ENCODER,
        steps: int | Literal["auto"] = "auto",
        hidden: int | Literal["auto"] = "auto",
        window: int = GraphConfig.window,
        directed: bool = True,
        weighting: Literal["count", "distance"] = "count",
        master_node: bool = True,
        master_skip: bool = True,
        renormalise: bool = True,
        combine: Literal["gru", "identity"] = "gru",
        potentials: bool | Literal["auto"] = "auto",
        members: int = 1,
        tokenizer: str | Tokenizer | Callable[[str], Iterable[str]] = "auto",
        vectors: str | Path | Sequence[str | Path] | None = AUTO_VECTORS,
        features: str | Path = WORDS,
        vector_size: int = 100,
        extra_words: int = 50_000,
        min_count: int = 1,
        max_epochs: int | Literal["auto"] = "auto",
        patience: int | Literal["auto"] | None = "auto",
        batch_size: int | Literal["auto"] = "auto",
        learning_rate: float | Literal["auto"] = "auto",
        dropout: float | Literal["auto"] = "auto",
        validation_fraction: float = 0.1,
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
        device: str = "auto",
        random_state: int | np.random.RandomState | None = None,
        warm_start: bool = False,
        verbose: bool | Literal["auto"] = "auto",
    ) -> None:
        self.variant = variant
        self.preset = preset
        self.encoder = encoder
        self.steps = steps
        self.hidden = hidden
        self.window = window
        self.directed = directed
        self.weighting = weighting
        self.master_node = master_node
        self.master_skip = master_skip
        self.renormalise = renormalise
        self.combine = combine
        self.potentials = potentials
        self.members = members
        self.tokenizer = tokenizer
        self.vectors = vectors
        self.features = features
        self.vector_size = vector_size
        self.extra_words = extra_words
        self.min_count = min_count
        self.max_epochs = max_epochs
        self.patience = patience
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.dropout = dropout
        self.validation_fraction = validation_fraction
        self.class_weight = class_weight
        self.device = device
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose

    def _training_config(self, seed: int, n_documents: int) -> TrainingConfig:
        preset = find_preset(self.preset)
        if self.encoder_ is not None:
            preset = replace(preset, training=preset.training | FINE_TUNING)
        settings = preset.training_on(n_documents)
        for name in ("max_epochs", "patience", "batch_size", "learning_rate"):
            if getattr(self, name) != "auto" and not (name == "max_epochs" and self._keeps_encoder):
                settings[name] = getattr(self, name)
        if settings.get("patience") is not None:
            settings["keep"] = "best"
        return TrainingConfig(seed=seed, **settings)

    def _make_network(self, n_classes: int, n_words: int, vector_width: int) -> MPAD:
        own = {name: value for name in ("steps", "hidden") if (value := getattr(self, name)) != "auto"}
        config = MPADConfig(
            n_classes=n_classes,
            vector_width=vector_width,
            n_words=n_words,
            variant=self.variant,
            dropout=self._dropout,
            learn_vectors=self._learns_vectors,
            **(
                own | self._ablations | find_preset(self.preset).network
                if self.encoder_ is None
                else self.encoder_.sizes
            ),
        )
        check_memory(sum(map(prod, config.tensor_shapes().values())))
        return MPAD(config)

    @property
    def _dropout(self) -> float:
        if self.dropout == "auto":
            return MPADConfig.dropout if self.encoder_ is None else FINE_TUNING_DROPOUT
        return self.dropout

    @property
    def _ablations(self) -> dict[str, Any]:
        names = "master_node", "master_skip", "renormalise", "combine"
        return {name: getattr(self, name) for name in names}

    def _set_encoder(self, words: Sequence[str], counts: NDArray[np.integer], earlier: Pipeline | None = None) -> None:
        if earlier is not None:  # words get their vectors where they had them
            kept = earlier.network.config.read_words
            self.start_ = Start(load_encoder(self.encoder or AUTO_ENCODER) if kept else None)
            return
        wanted = {name: value for name in ("steps", "hidden") if (value := getattr(self, name)) != "auto"}
        graph = GraphConfig(self.window, self.directed, self.weighting)
        others = [
            name
            for name, value in (("preset", DEFAULT_PRESET), ("vectors", AUTO_VECTORS), ("features", WORDS))
            if getattr(self, name) != value
        ]
        self.start_ = choose_start(self.encoder, words, counts, wanted | self._ablations, graph, others)

    @property
    def _by_sentence(self) -> bool:
        return self.variant != "mpad"

    def _make_model(self, tokenizer: Tokenizer, vocabulary: Vocabulary, network: Network, labels: Labels) -> Pipeline:
        graph_config = GraphConfig(self.window, self.directed, self.weighting)
        transformer = self._transformer
        if transformer is not None:
            network = network.to(find_device(self.device))  # where the transformer runs, too
        return Pipeline(tokenizer, vocabulary, graph_config, network, labels, transformer=transformer)

    @property
    def _transformer(self) -> Transformer | None:
        return as_transformer(self.features)

    @property
    def _members(self) -> int:
        members = self.members
        if isinstance(members, bool) or not isinstance(members, (int, np.integer)) or not 1 <= members <= MOST_MEMBERS:
            raise InputError(f"members must be a whole number from 1 to {MOST_MEMBERS}, not {members!r}")
        return int(members)

    @property
    def _keeps_encoder(self) -> bool:
        return not isinstance(self.max_epochs, bool) and self.max_epochs == 0

    def _has_few_labels(self, n_documents: int) -> bool:
        possible = self.encoder_ is not None and self.variant == "mpad" and self._wants_potentials
        possible = possible and self._members == 1 and self._earlier_model() is None
        if self._keeps_encoder and not possible:
            why = self.start_.reason or "it needs one, and variant, potentials, members and warm_start as by default"
            raise InputError(f"max_epochs=0 leaves the encoder as it is: {why}")
        tuned = "max_epochs", "patience", "batch_size", "learning_rate", "dropout"
        as_usual = all(getattr(self, name) == "auto" for name in tuned)
        return possible and (self._keeps_encoder or (n_documents < FEW_LABELS and as_usual))

    def _fit_few_labels(
        self, read: FitInput, model: Pipeline, data: TrainingData, seed: int, refit: bool, shown: bool
    ) -> None:
        assert self.encoder_ is not None
        network, documents = model.network.to(data.corpus.device), np.arange(len(data.targets))
        assert isinstance(network, MPAD)
        vectors = document_vectors(network, data.corpus, torch.from_numpy(documents).to(data.corpus.device))
        to_outputs, offset = (self.encoder_.tensors[f"classes.{name}"] for name in ("weight", "bias"))
        held, linear = read.split.held_out, linear_data(model, data)
        unlabeled = None
        if len(read.split.unlabeled):
            first, end = read.split.unlabeled[0], read.split.unlabeled[-1] + 1
            parts = read.texts[:first], read.texts[first:end], read.texts[end:]
            teachers = teacher_vectors(installed_teachers(str(data.corpus.device)), parts, shown)
            unlabeled = Unlabeled(read.split.unlabeled, teachers, read.soft_labels)

        def fit_on(trained: Rows, checked: Rows) -> FewLabels:
            further = read.split.described, unlabeled
            return fit_few_labels(linear, vectors, to_outputs, offset, trained, checked, seed, *further)

        few = fit_on(read.split.training, _NO_ROWS if held is None else held)
        used = fit_on(read.split.labeled, _NO_ROWS) if refit else few
        set_last_layer(network, used.last_weight, used.last_bias)
        scored = np.sort(np.concatenate([tested for _, tested in few.splits]))
        whole, fitted = calibrate(
            model.with_network(network), replace(few.fitted, logits=few.logits), few.logits, data.targets[scored]
        )
        history = History([], 0, interrupted=False)
        self._remember(replace(whole, potentials=used.fitted.potentials), fitted, [history])
        folds = len(few.splits) if held is None and len(few.splits) > 1 else 0
        self._report_further_texts(read.split, used)
        self._score(read, few.splits, few.logits, [history], refit, folds)

    def _complete(
        self, model: Pipeline, data: TrainingData, tasks: Sequence[Task], seed: int, train_on_held: bool = True
    ) -> tuple[Pipeline, HeldOutFit]:
        seen, held, logits = held_out_logits(model, tasks, data)
        model = trained_model(model, tasks)
        fitted = None
        if self._wants_potentials:
            fitted = fit_linear_part(linear_data(model, data), seen, held, logits, seed, train_on_held)
        return calibrate(model, fitted, logits, data.targets[held])

    def _refit(
        self, model: Pipeline, fitted: HeldOutFit, data: TrainingData, tasks: Sequence[Task], seed: int
    ) -> Pipeline:
        model = trained_model(model, tasks)
        if fitted.part_weights is None:
            scale_logits(model.network, 1 / (fitted.temperature or 1.0))
            return model
        return replace(model, potentials=fit_all(linear_data(model, data), fitted.part_weights, seed, fitted.bias))

    @property
    def _wants_potentials(self) -> bool:
        return find_preset(self.preset).potentials if self.potentials == "auto" else self.potentials

    def fit_stream(
        self,
        data: Any,
        *,
        text: str | None = None,
        label: str | Sequence[str] | None = None,
        separator: str | None = None,
        options: StreamOptions | None = None,
        sink: Sink | None = None,
        checkpoint: str | Path | None = None,
        resume: bool = False,
        keep_interrupted: bool = False,
    ) -> Self:
        """Train on documents that need not fit into memory: Parquet, CSV, JSON lines, or a Hugging Face dataset.

        Parameters
        ----------
        data : str, path or datasets.Dataset
            A file, a pattern such as "corpus/*.parquet", or a dataset.
        text, label, separator : str or None, default=None
            Columns and separator, as in `read_documents`.
        options : StreamOptions or None, default=None
            Cache folder for packed graphs, processes, window size.
        sink, checkpoint, resume, keep_interrupted
            As in `fit`.

        Returns
        -------
        self
            If `torchrun` has started several processes, each trains on its share, and all end with the same model.

        """
        from mpad.estimator.out_of_core import fit_stream  # here: most never need it

        named = label if label is None or isinstance(label, str) else tuple(label)
        columns = Columns(text, named, separator)
        fit_stream(self, data, columns, options or StreamOptions(), sink, checkpoint, resume, keep_interrupted)
        return self

    def explain(
        self, text: str, label: Any = None, method: str = DEFAULT, unit: str = "occurrence", *, against: Any = None
    ) -> Explanation:
        """Explain a prediction: return a weight for every word, word pair and sentence.

        Parameters
        ----------
        text : str
            The document.
        label : object, default=None
            Class to explain; by default the predicted one.
        method : {"gradients", "occlusion", "attention", "shapley"}, default="gradients"
            "gradients": contribution to the class's log-odds, integrated from an empty document to this one;
            "occlusion": the drop in log-odds without the part; "attention": where the network looked; "shapley": exact
            Shapley values and interactions of words, for texts of up to 12 words.
        unit : {"occurrence", "word"}, default="occurrence"
            Occlusion removes one occurrence of a word at a time, or all of them, which then share the weight.
        against : object, default=None
            Explain why `label` rather than this class; by default, rather than any other.

        Returns
        -------
        Explanation
            If node features come from a transformer, its states stay fixed: the network's use of them is explained.

        Examples
        --------
        >>> model.explain("not bad at all").show()                              # doctest: +SKIP

        """
        from mpad.explain import explain  # here, so that answering does not wait for it

        check_is_fitted(self)
        return explain(self.model_, text, label, method, unit=unit, against=against)

    def smallest_change(self, text: str, most: int = 5) -> "Counterfactual | None":
        """Find the fewest words whose removal changes the predicted label.

        Parameters
        ----------
        text : str
            The document.
        most : int, default=5
            Largest number of words to remove, at most 5.

        Returns
        -------
        Counterfactual or None
            None if no set of up to `most` words was found.

        Examples
        --------
        >>> print(model.smallest_change("not bad at all"))                      # doctest: +SKIP

        """
        from mpad.explain import find_counterfactual

        check_is_fitted(self)
        return find_counterfactual(self.model_, text, most)


def linear_data(model: Pipeline, data: TrainingData) -> LinearData:
    """Return the training data as the linear part reads it."""
    words, n_classes = model.vocabulary.words, len(model.labels)
    vectors = linear_vectors(model)
    return LinearData(data.packed, data.targets, data.weights, n_classes, len(words), vectors, words, data.groups)


def linear_vectors(model: Pipeline) -> NDArray[np.floating]:
    """Return the word vectors that the linear part averages; no columns if the network learned them."""
    vectors: NDArray[np.float32] = model.network.vectors.detach().cpu().numpy()
    return vectors[:, :0] if model.network.config.learn_vectors else vectors.astype(np.float16)


def calibrate(
    model: Pipeline, fitted: HeldOutFit | None, logits: NDArray[np.floating], targets: NDArray[Any]
) -> tuple[Pipeline, HeldOutFit]:
    """Return the model with its linear part, or else calibrated by a temperature; with thresholds if it is multi-label.

    `logits` are those of the network for held-out documents with these targets.
    """
    if fitted is not None:
        model = replace(model, potentials=fitted.potentials)
    else:
        factor = fit_temperature(logits, targets)
        scale_logits(model.network, factor)
        fitted = HeldOutFit(logits=factor * logits, temperature=1 / factor)
    if model.labels.multilabel and fitted.logits is not None:
        thresholds = fit_thresholds(model.labels.probabilities(fitted.logits), targets)
        model = replace(model, labels=replace(model.labels, thresholds=thresholds))
    return model, fitted
