"""What all our estimators of networks have in common: scikit-learn's contract over raw text."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mpad.estimators.first_weights import Seeded, check_memory
from mpad.estimators.linear_part import LinearPart
from mpad.inputs import as_examples, as_seed, as_texts, as_validation, as_weights
from mpad.inspection import warn_of_labels, warn_of_words
from mpad.labels import Labels, learn_labels
from mpad.models.network import Network
from mpad.pipeline.store import as_json, load_model, save_model
from mpad.pipeline.text_model import TextModel
from mpad.storage.model_card import model_card
from mpad.text.distilled import named_source
from mpad.text.tokenizer import Tokenizer, as_tokenizer
from mpad.text.vectors import WordVectors, make_vectors, random_vectors
from mpad.text.vocabulary import Vocabulary, learn_vocabulary
from mpad.training.checkpoint import Checkpoint, check_free, fingerprint, read_checkpoint
from mpad.training.config import TrainingConfig
from mpad.training.device import find_device
from mpad.training.examples import make_examples
from mpad.training.holdout import hold_out
from mpad.training.loop import History, train
from mpad.training.progress import Sink, silent, to_stderr
from mpad.training.task import Task
from mpad.version import __version__


class TextClassifier(ClassifierMixin, TransformerMixin, BaseEstimator, ABC):  # type: ignore[misc]
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
    random_state: int | np.random.RandomState | None
    verbose: bool

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
        sink: Sink | None = None,
        checkpoint: str | Path | None = None,
        resume: bool = False,
        keep_interrupted: bool = False,
    ) -> Self:
        """Learn from texts X and labels y, or a binary indicator matrix y for many labels a document.

        `validation`, texts and labels, chooses the best epoch instead of a held-out part of X. `sink` is called
        with an EpochReport after every epoch. `checkpoint` names a file that is written after every epoch; with
        `resume` training goes on from it, if it is there. Ctrl-C is raised as everywhere, unless `keep_interrupted`
        says that it ends training and keeps the best epoch so far.
        """
        texts, y = as_examples(X, y)
        labels = learn_labels(y)
        warn_of_labels(labels, y)
        targets = labels.encode(y)
        weights = labels.weights(self.class_weight, targets) * as_weights(sample_weight, len(texts))
        held_out = None if validation is None else as_validation(validation, labels)
        saved = None
        if checkpoint is not None and not resume:
            check_free(Path(checkpoint))
        elif checkpoint is not None:
            saved = read_checkpoint(Path(checkpoint))
        seed = as_seed(self.random_state) if saved is None else saved.seed
        training = self._training_config(seed, len(texts))
        device = find_device(self.device)
        model, packed = self._build(texts, labels, seed, also=held_out[0] if held_out else ())
        if held_out is None:
            chosen, held = hold_out(targets, self.validation_fraction, seed)
        else:
            checked, truth = held_out
            chosen, held = np.arange(len(texts)), np.arange(len(texts), len(texts) + len(checked))
            texts, targets = texts + checked, np.concatenate([targets, truth])
            weights = np.concatenate([weights, np.ones(len(checked), np.float32)])
            packed = model.pack(texts)
        kept = None
        if checkpoint is not None:
            arrays = {name: value for name, value in vars(packed).items() if isinstance(value, np.ndarray)}
            belongs_to = self._fingerprint(model, {**arrays, "y": targets, "w": weights, "held": held})
            kept = Checkpoint(Path(checkpoint), belongs_to, seed, saved)
        corpus = model.tensors(packed, device)
        examples = make_examples(corpus, chosen, targets, weights)
        checks = make_examples(corpus, held, targets) if len(held) else None
        task = Task(model.network.to(device), examples, checks, training)
        (history,) = train([task], sink or (to_stderr if self.verbose else silent), keep_interrupted, kept)
        model, linear = self._complete(model, packed, targets, weights, chosen, held, seed)
        self._remember(model, history, linear)
        self.card_ = self._card(len(chosen), len(held), history)
        return self

    def _complete(
        self,
        model: TextModel,
        packed: Any,
        targets: NDArray[Any],
        weights: NDArray[np.float32],
        chosen: NDArray[np.int64],
        held: NDArray[np.int64],
        seed: int,
    ) -> tuple[TextModel, LinearPart | None]:
        """Fit what stands beside the trained network, if anything does; the whole model, and what was fitted.

        `chosen` and `held` are the packed documents that the network has learnt from, and has not.
        """
        return model, None

    def _fingerprint(self, model: TextModel, data: Mapping[str, NDArray[Any]]) -> str:
        """What a checkpoint belongs to: the documents as the network reads them, its first weights, the settings."""
        free = ("max_epochs", "verbose", "device")
        settings = {name: as_json(value) for name, value in self.get_params(deep=False).items() if name not in free}
        first = {name: value.cpu().numpy() for name, value in model.network.state_dict().items()}
        arrays = {**data, **first, "vectors": model.network.vectors.detach().cpu().numpy()}
        return fingerprint([__version__, settings, list(model.vocabulary.words)], arrays)

    def _card(self, n_training: int, n_held: int, history: History) -> dict[str, Any]:
        best = history.reports[history.best_epoch - 1] if history.best_epoch else None
        accuracy = None if best is None or not n_held else round(best.validation_accuracy, 4)
        compared = {name.replace("-", "_"): round(value, 4) for name, value in self.held_out_accuracy_.items()}
        accuracy = compared.pop("mpad", accuracy)
        return model_card(
            n_training + n_held,
            held_out=n_held,
            epochs=len(history.reports),
            best_epoch=history.best_epoch,
            validation_accuracy=accuracy,
            **{f"validation_accuracy_{name}": value for name, value in compared.items()},
            answers_by=None if self.answers_by_ == "mpad" else self.answers_by_,
            interrupted=history.interrupted or None,
        )

    def _build(
        self,
        texts: list[str],
        labels: Labels,
        seed: int,
        vectors_from: NDArray[np.int64] | None = None,
        also: Sequence[str] = (),
    ) -> tuple[TextModel, Any]:
        """Make an untrained model that can read these texts, and the texts as it reads them.

        Vectors of the corpus are learnt from all its texts, or from the rows `vectors_from` alone. Words of the texts
        `also` have rows of their own too, where these are not learnt.
        """
        tokenizer = as_tokenizer(self.tokenizer)
        learnt, corpus = learn_vocabulary(texts, tokenizer, self._by_sentence, self.min_count)
        warn_of_words(texts, corpus, tokenizer)
        others = learn_vocabulary(also, tokenizer)[0].words if len(also) and not self._learns_vectors else ()
        vocabulary = learnt.extended(others)
        source = texts if vectors_from is None else [texts[row] for row in vectors_from]
        vectors = self._word_vectors(source, tokenizer, vocabulary, seed)
        network = self._network(len(labels), len(vectors.rows), vectors.width, seed)
        rows = torch.from_numpy(vectors.rows)  # rounded as they will be saved: a loaded model gives the same answers
        network.set_vectors(rows if network.config.learn_vectors else rows.half().float())
        model = self._make_model(tokenizer, vectors.vocabulary, network, labels)
        return model, model.packed(corpus.with_vocabulary_grown(len(learnt), len(vectors.vocabulary)), texts)

    def _network(self, n_classes: int, n_words: int, vector_width: int, seed: int) -> Network:
        """Make an untrained network, its word vectors still empty."""
        with torch.device("meta"):
            outline = self._make_network(n_classes, n_words, vector_width)
        check_memory(sum(tensor.numel() for tensor in (*outline.parameters(), *outline.buffers())))
        with Seeded(seed):
            return self._make_network(n_classes, n_words, vector_width)

    def _word_vectors(self, texts: list[str], tokenizer: Tokenizer, vocabulary: Vocabulary, seed: int) -> WordVectors:
        sources = self._vector_sources
        if not sources:
            return random_vectors(vocabulary, self.vector_size, seed)
        # These are the same for every seed, so that models can share them.
        return make_vectors(sources, texts, tokenizer, vocabulary, self.vector_size, self.extra_words)

    @property
    def _vector_sources(self) -> list[str | Path]:
        """Where word vectors come from; none where the network learns them."""
        if self.vectors is None:
            return []
        given = [self.vectors] if isinstance(self.vectors, (str, Path)) else list(self.vectors)
        result = [named_source(source) if isinstance(source, str) else source for source in given]
        return [source for source in result if source is not None]

    @property
    def _learns_vectors(self) -> bool:
        return not self._vector_sources

    def _remember(self, model: TextModel, history: History, linear: LinearPart | None = None) -> None:
        self.model_ = model
        self.classes_ = model.labels.classes
        self.history_ = history.reports
        self.best_epoch_ = history.best_epoch
        self.n_iter_ = len(history.reports)
        self.interrupted_ = history.interrupted
        self.held_out_accuracy_ = {} if linear is None else linear.accuracies
        self.answers_by_ = "mpad" if linear is None else linear.answers_by
        self.card_ = {}

    def decision_function(self, X: Iterable[str]) -> NDArray[np.float32]:
        """Scores before softmax or sigmoid: (n, n_classes); of two classes, the second's lead over the first: (n,)."""
        check_is_fitted(self)
        logits = self.model_.logits(as_texts(X))
        if len(self.classes_) == 2 and not self.model_.labels.multilabel:
            return np.asarray(logits[:, 1] - logits[:, 0])
        return logits

    def predict_proba(self, X: Iterable[str]) -> NDArray[np.float64]:
        """Probability of each class: (n, n_classes)."""
        check_is_fitted(self)
        return self.model_.probabilities(as_texts(X))

    def predict(self, X: Iterable[str], *, reject_below: float | None = None) -> NDArray[Any]:
        """Label of each document: (n,), or indicators (n, n_classes) for many labels a document.

        With `reject_below`, None instead of a label that has a lower probability than that.
        """
        check_is_fitted(self)
        logits, labels = self.model_.logits(as_texts(X)), self.model_.labels
        return labels.decide(logits) if reject_below is None else labels.decide_or_reject(logits, reject_below)

    def transform(self, X: Iterable[str]) -> NDArray[np.float32]:
        """Vector of each document, as the last layer sees it: (n, width)."""
        check_is_fitted(self)
        return self.model_.vectors(as_texts(X))

    def save(self, folder: str | Path) -> None:
        """Write the fitted model to a folder: config.json, vocabulary.json, model.safetensors and their checksums.

        A model that is there is replaced, at once and whole. A folder that holds anything else is left alone.
        """
        check_is_fitted(self)
        parameters = {name: as_json(value) for name, value in self.get_params(deep=False).items()}
        estimator = {**parameters, "best_epoch_": self.best_epoch_}
        save_model(self.model_, estimator, self.card_, folder, __version__)

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
        estimator.tokenizer = model.tokenizer.name if tokenizer is None else tokenizer
        best = parameters.get("best_epoch_", 0)
        estimator._remember(model, History([], best if type(best) is int else 0, interrupted=False))
        estimator.card_ = files.card()
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
