"""Several models on the same folds of one's own documents, side by side."""

import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t
from sklearn.base import clone
from sklearn.metrics import f1_score
from sklearn.model_selection import StratifiedKFold

from mpad.errors import InputError
from mpad.inputs import as_examples


@dataclass(frozen=True)
class Scores:
    """What a model came to over the folds."""

    name: str
    accuracy: NDArray[np.float64]  # (folds,)
    macro_f1: NDArray[np.float64]  # (folds,)
    fit_seconds: NDArray[np.float64]  # (folds,)
    documents_a_second: float  # predicted
    megabytes: float  # of the saved model
    p_value: float | None  # that it differs from the first model by chance; None for the first

    @property
    def margin(self) -> float:
        """Half of the 95 % interval of the mean accuracy."""
        n = len(self.accuracy)
        return float(t.ppf(0.975, n - 1) * self.accuracy.std(ddof=1) / n**0.5)


def compare(
    models: Mapping[str, Any],
    X: Iterable[str],
    y: Any,
    *,
    folds: int = 5,
    seed: int = 0,
    done: Callable[[str, int], None] = lambda name, fold: None,
) -> list[Scores]:
    """Fit and test every estimator on the same stratified folds; `done` hears of each fold.

    The p-values are those of the paired t-test over folds with Nadeau and Bengio's correction: folds share most of
    their training documents, and the plain test would find differences where there are none.
    """
    texts, truth = as_examples(X, y)
    if not models:
        raise InputError("expected at least one model to compare")
    rarest = np.unique(truth, return_counts=True)[1].min()
    if not 2 <= folds <= rarest:
        raise InputError(f"folds must be from 2 to {rarest}, the documents of the rarest class, not {folds}")
    splits = list(StratifiedKFold(folds, shuffle=True, random_state=seed).split(truth, truth))
    result: list[Scores] = []
    for name, model in models.items():
        rows, size = [], 0.0
        for fold, (training, test) in enumerate(splits):
            fitted, row = _run(model, texts, truth, training, test)
            rows.append(row)
            if fold == 0:
                size = _megabytes(fitted)
            done(name, fold)
        accuracy, f1, fit, predict = np.array(rows).T
        p_value = _p_value(accuracy - result[0].accuracy, len(splits[0][1]) / len(splits[0][0])) if result else None
        speed = len(texts) / float(predict.sum())
        result.append(Scores(name, accuracy, f1, fit, speed, size, p_value))
    return result


def _run(
    model: Any, texts: list[str], truth: NDArray[Any], training: NDArray[Any], test: NDArray[Any]
) -> tuple[Any, tuple[float, ...]]:
    """A fitted clone, and its accuracy, macro-F1, and seconds to fit and to predict."""
    start = time.perf_counter()
    fitted = clone(model).fit([texts[row] for row in training], truth[training])
    learnt = time.perf_counter()
    predicted = fitted.predict([texts[row] for row in test])
    end = time.perf_counter()
    accuracy = float(np.mean(predicted == truth[test]))
    return fitted, (accuracy, float(f1_score(truth[test], predicted, average="macro")), learnt - start, end - learnt)


def _megabytes(fitted: Any) -> float:
    with tempfile.TemporaryDirectory() as folder:
        fitted.save(Path(folder) / "model")
        return sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file()) / 1e6


def _p_value(difference: NDArray[np.float64], test_to_training: float) -> float:
    """Two-sided, of the corrected resampled t-test (Nadeau & Bengio, 2003)."""
    n, spread = len(difference), float(difference.var(ddof=1))
    if spread == 0.0:
        return 1.0 if difference.mean() == 0 else 0.0
    statistic = difference.mean() / np.sqrt((1 / n + test_to_training) * spread)
    return float(2 * t.sf(abs(statistic), n - 1))
