"""The base of baselines that are not networks of this package: scikit-learn's contract and a model folder."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from mpad._version import __version__
from mpad.data.inputs import as_examples, as_texts, label_names
from mpad.data.inspection import no_words, warn_of_labels
from mpad.data.labels import Labels, learn_labels
from mpad.errors import DamagedModel, InputError, MPADError
from mpad.extras import require
from mpad.files.tensors import Arrays
from mpad.linear.fit import LIBLINEAR
from mpad.storage.model_folder import ModelFiles, as_json, model_card, new_folder, open_model, write_tensors
from mpad.storage.model_formats import FORMAT
from mpad.text.tokenizer import Tokenizer, as_tokenizer, saved_tokenizer


class PlainClassifier(ClassifierMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """A text classifier that learns in one go. Subclasses list their parameters as fields of a dataclass."""

    kind: str  # its name in the zoo
    needs: tuple[str, ...] = ()  # modules of the extra "baselines"
    reads_words = True  # whether it reads the words of one of our tokenizers
    many_labels = False  # whether it takes documents that have many
    labels_: Labels
    tokenizer_: Tokenizer  # that which suits the documents that it learnt from
    card_: dict[str, Any]

    @classmethod
    def check_extras(cls) -> None:
        """Say what is missing before any work is done."""
        for module in cls.needs:
            require(module, extra="baselines")

    @abstractmethod
    def _learn(self, texts: list[str], targets: NDArray[Any], n_classes: int) -> None:
        """Learn from texts and class numbers (n,); of many labels a document, indicators (n, n_classes)."""

    @abstractmethod
    def _scores(self, texts: list[str]) -> NDArray[Any]:
        """Text → a score for each class, higher for likelier: (n, n_classes)."""

    @abstractmethod
    def _state(self, folder: Path) -> tuple[Arrays, dict[str, Any]]:
        """Return the learned arrays and JSON values; files of its own go to the folder."""

    @abstractmethod
    def _restore(self, files: ModelFiles, facts: dict[str, Any]) -> None:
        """Take back what `_state` gave, each array of the shape that it must have."""

    def fit(self, X: Iterable[str], y: Any) -> Self:
        """Learn from texts X and labels y; for many labels a document, y has lists of labels, or 0 and 1 by column."""
        names = label_names(y)
        texts, truth = as_examples(X, y)
        self.labels_ = learn_labels(truth, names)
        if self.labels_.multilabel and not self.many_labels:
            raise InputError(f"'{self.kind}' gives one label a document, and y has many; take tfidf-svm or mpad")
        warn_of_labels(self.labels_, truth)
        self.tokenizer_ = as_tokenizer("auto", texts)
        if self.reads_words and not any(map(self.tokenizer_.words, texts)):
            raise no_words(len(texts))
        self.classes_ = self.labels_.classes
        self._learn(texts, self.labels_.encode(truth), len(self.labels_))
        self.card_ = model_card(documents=len(texts))
        return self

    def predict(self, X: Iterable[str]) -> NDArray[Any]:
        """Label of each document: (n,), or indicators (n, n_classes) for many labels a document."""
        return self.labels_.decide(self.class_scores(X))

    def score(self, X: Iterable[str], y: Any, sample_weight: Any = None) -> float:
        """Share of documents that are right; of many labels a document, of those that are right in all labels."""
        check_is_fitted(self)
        return float(super().score(X, self.labels_.as_predicted(y), sample_weight))

    def class_scores(self, X: Iterable[str]) -> NDArray[Any]:
        """Return a score per class, higher for likelier classes: (n, n_classes)."""
        check_is_fitted(self)
        texts = as_texts(X)
        return self._scores(texts) if texts else np.zeros((0, len(self.labels_)))

    def save(self, folder: str | Path) -> None:
        """Write what was learnt to a folder."""
        check_is_fitted(self)
        parameters = {name: as_json(value) for name, value in self.get_params(deep=False).items()}
        config: dict[str, Any] = {
            "format": FORMAT,
            "mpad": __version__,
            "kind": self.kind,
            "labels": self.labels_.to_json(),
            "estimator": parameters,
            "card": self.card_,
            "tokenizer": self.tokenizer_.name,
            "facts": {},
        }
        with new_folder(folder, config) as fresh:
            arrays, facts = self._state(fresh)
            config["facts"] |= facts
            if arrays:
                write_tensors(fresh, arrays)

    @classmethod
    def load(cls, folder: str | Path, device: str = "auto") -> Self:
        """Read a fitted model."""
        return open_model(folder, cls._read)

    @classmethod
    def _read(cls, files: ModelFiles) -> Self:
        if files.kind != cls.kind:
            raise DamagedModel(f"{files.path}: the model is a '{files.kind}', not a '{cls.kind}'")
        try:
            estimator = cls(**files.estimator())
            estimator.labels_ = files.labels()
            estimator.classes_ = estimator.labels_.classes
            estimator.card_ = files.card()
            estimator.tokenizer_ = saved_tokenizer(str(files.config.get("tokenizer", "kim")), None)
            estimator._restore(files, dict(files.config["facts"]))
        except MPADError:
            raise
        except (KeyError, TypeError, ValueError, IndexError, OverflowError, OSError) as error:
            raise DamagedModel(
                f"{files.path}: not a whole '{cls.kind}' model: {type(error).__name__}: {error}"
            ) from None
        return estimator

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "labels_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.classifier_tags.multi_label = self.many_labels
        return tags


class ProbableClassifier(PlainClassifier):
    """One whose scores are logits, or logarithms of probabilities."""

    def predict_proba(self, X: Iterable[str]) -> NDArray[np.float64]:
        """Probability of each class: (n, n_classes)."""
        return self.labels_.probabilities(self.class_scores(X))


def linear_shapes(width: int, labels: Labels) -> dict[str, tuple[int, ...]]:
    """Shapes of a linear classifier's weight and bias."""
    return {"weight": (labels.n_scores, width), "bias": (labels.n_scores,)}


def fit_linear(model: Any, features: Any, targets: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Fit one of scikit-learn's linear classifiers: weight and bias; of many labels a document, a row for each."""
    if targets.ndim == 1:
        with LIBLINEAR:
            fitted = clone(model).fit(features, targets)
        return fitted.coef_, np.atleast_1d(fitted.intercept_)
    weight, bias = np.zeros((targets.shape[1], features.shape[1])), np.where(targets[0] > 0.5, 1.0, -1.0)
    for label, column in enumerate(targets.T > 0.5):
        if len(np.unique(column)) > 1:  # else no document has the label, or all have
            weight[[label]], bias[[label]] = fit_linear(model, features, column)
    return weight, bias


def linear_scores(features: Any, weight: NDArray[Any], bias: NDArray[Any]) -> NDArray[Any]:
    """Features Wᵀ + b, for two classes as one row of weights: (n, n_classes)."""
    scores = np.asarray(features @ weight.T + bias)
    return np.hstack([np.zeros_like(scores), scores]) if scores.shape[1] == 1 else scores
