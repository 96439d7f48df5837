"""Settings searched for on one's own documents (Optuna): the default is the first trial, so no worse comes out."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mpad.errors import InputError
from mpad.estimators.classifier import MPADClassifier
from mpad.extras import require
from mpad.inputs import as_examples
from mpad.labels import learn_labels
from mpad.training.holdout import hold_out

_SHARE = 0.2  # of the documents, that settings are compared on


@dataclass(frozen=True)
class Trial:
    """One setting that was tried, on documents that it was not fitted on."""

    number: int  # 0: the default
    settings: dict[str, Any]
    log_likelihood: float  # mean, of a document: what is maximised, as it tells more than accuracy
    accuracy: float


def tune(
    X: Sequence[str],
    y: Any,
    *,
    minutes: float,
    study: Path | None = None,
    most_trials: int | None = None,
    done: Callable[[Trial], None] = lambda trial: None,
    **fixed: Any,
) -> list[Trial]:
    """Try settings until the time is over, each fitted on four fifths of the documents and compared on the rest.

    The trials so far are kept in the file `study`, if one is named, and gone on with. `fixed` settings stay as they
    are. Best first.
    """
    optuna = require("optuna", extra="tune")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    if not minutes > 0:
        raise InputError(f"minutes must be above 0, not {minutes}")
    texts, truth = as_examples(X, y)
    labels = learn_labels(truth)
    if labels.multilabel:
        raise InputError("tuning is for one label a document")
    targets = labels.encode(truth)
    training, test = hold_out(targets, _SHARE, 0)
    if not len(test):
        raise InputError("there are too few documents of each class to compare settings on some of them")

    def objective(trial: Any) -> float:
        settings = {**_suggest(trial), **fixed} if trial.number else dict(fixed)
        model = MPADClassifier(**settings).fit([texts[k] for k in training], truth[training])
        p = model.predict_proba([texts[k] for k in test])
        right = p[np.arange(len(test)), targets[test]]
        trial.set_user_attr("settings", {name: settings[name] for name in settings if name not in fixed})
        trial.set_user_attr("accuracy", float((p.argmax(1) == targets[test]).mean()))
        return float(np.log(np.maximum(right, 1e-12)).mean())

    storage = None if study is None else f"sqlite:///{study.resolve()}"
    sampler = optuna.samplers.TPESampler(seed=int(fixed.get("random_state") or 0))
    search = optuna.create_study(
        study_name="mpad", direction="maximize", storage=storage, sampler=sampler, load_if_exists=True
    )
    end = time.monotonic() + 60 * minutes
    while not search.trials or (time.monotonic() < end and (most_trials is None or len(search.trials) < most_trials)):
        search.optimize(objective, n_trials=1)
        done(_as_trial(search.trials[-1]))
    finished = [_as_trial(trial) for trial in search.trials if trial.value is not None]
    return sorted(finished, key=lambda trial: (-trial.log_likelihood, trial.number))


def _suggest(trial: Any) -> dict[str, Any]:
    return {
        "hidden": trial.suggest_categorical("hidden", [32, 64, 128]),
        "steps": trial.suggest_int("steps", 1, 3),
        "window": trial.suggest_int("window", 2, 4),
        "dropout": trial.suggest_float("dropout", 0.2, 0.7),
        "learning_rate": trial.suggest_float("learning_rate", 1e-3, 1e-2, log=True),
        "max_epochs": trial.suggest_categorical("max_epochs", [8, 15, 25]),
        "tokenizer": trial.suggest_categorical("tokenizer", ["kim", "kim-cased"]),
        "variant": trial.suggest_categorical("variant", ["mpad", "sentence-att", "path"]),
    }


def _as_trial(trial: Any) -> Trial:
    attributes = trial.user_attrs
    value = float("-inf") if trial.value is None else float(trial.value)
    return Trial(trial.number, dict(attributes.get("settings", {})), value, float(attributes.get("accuracy", 0.0)))


def plot_trials(trials: Sequence[Trial], path: Path) -> None:
    """Draw accuracy of each trial, and the best so far by likelihood, to a file."""
    figure = require("matplotlib.figure", extra="plots").Figure(figsize=(6, 3.5), layout="constrained", dpi=120)
    axes = figure.subplots()
    ordered = sorted(trials, key=lambda trial: trial.number)
    best = np.maximum.accumulate([trial.log_likelihood for trial in ordered])
    numbers = [trial.number for trial in ordered]
    axes.plot(numbers, [trial.log_likelihood for trial in ordered], "o", color="#999999")
    axes.step(numbers, best, where="post", color="#0072b2")
    axes.set(xlabel="trial (0 is the default)", ylabel="mean log-likelihood of a held-out document")
    axes.grid(alpha=0.3)
    figure.savefig(path)
