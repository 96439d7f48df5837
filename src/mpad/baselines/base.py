"""What estimators without a network of ours have in common: scikit-learn's contract, and a folder one can read."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from mpad.errors import DamagedModel, InputError, MPADError
from mpad.extras import require
from mpad.inputs import as_examples, as_texts
from mpad.inspection import warn_of_labels
from mpad.io.tensors import Arrays
from mpad.labels import Labels, learn_labels
from mpad.pipeline.store import as_json
from mpad.storage.model_card import model_card
from mpad.storage.model_folder import ModelFiles, new_folder, open_model, write_tensors
from mpad.storage.model_formats import FORMAT
from mpad.text.tokenizer import KimTokenizer
from mpad.version import __version__


class PlainClassifier(ClassifierMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """A text classifier that learns in one go; one label a document."""

    kind: str  # its name in the zoo
    needs: tuple[str, ...] = ()  # modules of the extra "baselines"
    reads_words = True  # whether it reads the words of Kim's tokenizer
    labels_: Labels
    card_: dict[str, Any]

    @classmethod
    def check_extras(cls) -> None:
        """Say what is missing before any work is done."""
        for module in cls.needs:
            require(module, extra="baselines")

    @abstractmethod
    def _learn(self, texts: list[str], targets: NDArray[np.int64], n_classes: int) -> None:
        """Learn from texts and class numbers."""

    @abstractmethod
    def _scores(self, texts: list[str]) -> NDArray[Any]:
        """Text → a score for each class, higher for likelier: (n, n_classes)."""

    @abstractmethod
    def _state(self, folder: Path) -> tuple[Arrays, dict[str, Any]]:
        """What was learnt: arrays, and what JSON can hold; files of its own go to the folder."""

    @abstractmethod
    def _restore(self, files: ModelFiles, facts: dict[str, Any]) -> None:
        """Take back what `_state` gave, each array of the shape that it must have."""

    def fit(self, X: Iterable[str], y: Any) -> Self:
        """Learn from texts X and labels y."""
        texts, truth = as_examples(X, y)
        self.labels_ = learn_labels(truth)
        if self.labels_.multilabel:
            raise InputError(f"'{self.kind}' gives one label a document; y is an indicator matrix")
        warn_of_labels(self.labels_, truth)
        if self.reads_words and not any(map(KimTokenizer().words, texts)):
            raise InputError(
                f"not one word is left of any of the {len(texts):,} documents: '{self.kind}' reads Latin letters and "
                "digits alone; mpad itself reads every script with tokenizer='unicode' (--tokenizer unicode)"
            )
        self.classes_ = self.labels_.classes
        self._learn(texts, self.labels_.encode(truth), len(self.labels_))
        self.card_ = model_card(documents=len(texts))
        return self

    def predict(self, X: Iterable[str]) -> NDArray[Any]:
        """Label of each document: (n,)."""
        check_is_fitted(self)
        texts = as_texts(X)
        return self.labels_.decide(self._scores(texts)) if texts else np.asarray(self.classes_[:0])

    def save(self, folder: str | Path) -> None:
        """Write what was learnt to a folder."""
        check_is_fitted(self)
        parameters = {name: as_json(value) for name, value in self.get_params(deep=False).items()}
        config: dict[str, Any] = {
            "format": FORMAT,
            "mpad": __version__,
            "kind": self.kind,
            "labels": self.labels_.to_json(),
        }
        config |= {"estimator": parameters, "card": self.card_, "facts": {}}
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
        return tags


class ProbableClassifier(PlainClassifier):
    """One whose scores are logits, or logarithms of probabilities."""

    def predict_proba(self, X: Iterable[str]) -> NDArray[np.float64]:
        """Probability of each class: (n, n_classes)."""
        check_is_fitted(self)
        texts = as_texts(X)
        return self.labels_.probabilities(self._scores(texts)) if texts else np.zeros((0, len(self.labels_)))


def linear_shapes(width: int, n_classes: int) -> dict[str, tuple[int, ...]]:
    """Shapes of a linear classifier's weight and bias: of two classes, one row."""
    rows = 1 if n_classes == 2 else n_classes
    return {"weight": (rows, width), "bias": (rows,)}


def linear_scores(features: Any, weight: NDArray[Any], bias: NDArray[Any]) -> NDArray[Any]:
    """Features Wᵀ + b, for two classes as one row of weights: (n, n_classes)."""
    scores = np.asarray(features @ weight.T + bias)
    return np.hstack([np.zeros_like(scores), scores]) if scores.shape[1] == 1 else scores
