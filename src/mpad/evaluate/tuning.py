"""Hyper-parameter search with Optuna; the default is the first trial, so the best is never worse."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpad.data.equal_texts import text_groups
from mpad.data.inputs import as_examples
from mpad.data.labels import learn_labels
from mpad.encoder.encoder import AUTO
from mpad.errors import InputError
from mpad.estimator.classifier import MPADClassifier
from mpad.extras import require
from mpad.training.task import hold_out

_TEST_SHARE = 0.2  # documents on which settings are compared


@dataclass(frozen=True)
class Trial:
    """Setting with its scores on held-out documents."""

    number: int  # 0 is the default
    settings: dict[str, Any]
    log_likelihood: float  # mean per document; maximized, as it is less noisy than accuracy
    accuracy: float


Scores = tuple[float, float]  # log-likelihood and accuracy


@dataclass(frozen=True)
class Comparison:
    """Training and test documents of every trial."""

    texts: list[str]
    truth: NDArray[Any]
    targets: NDArray[Any]
    training: NDArray[Any]  # rows
    test: NDArray[Any]  # rows

    def score(self, settings: dict[str, Any]) -> Scores:
        """Fit a model with these settings; return its log-likelihood and accuracy on the test documents."""
        model = MPADClassifier(**settings).fit([self.texts[k] for k in self.training], self.truth[self.training])
        p = model.predict_proba([self.texts[k] for k in self.test])
        right = p[np.arange(len(self.test)), self.targets[self.test]]
        accuracy = float((p.argmax(1) == self.targets[self.test]).mean())
        return float(np.log(np.maximum(right, 1e-12)).mean()), accuracy


class Runner:
    """Runner of trials one after the other, in this process."""

    slots = 1  # concurrent trials

    def submit(self, number: int, comparison: Comparison, settings: dict[str, Any]) -> None:
        """Start a trial."""
        self._pending = number, comparison, settings

    def next_done(self) -> tuple[int, Scores]:
        """Wait for the next trial to finish; return its number and its scores."""
        number, comparison, settings = self._pending
        return number, comparison.score(settings)


def tune(
    X: Sequence[str],
    y: Any,
    *,
    minutes: float,
    study: Path | None = None,
    most_trials: int | None = None,
    done: Callable[[Trial], None] = lambda trial: None,
    runner: Runner | None = None,
    **fixed: Any,
) -> list[Trial]:
    """Search for settings of `MPADClassifier` that maximize the likelihood of held-out documents.

    Each trial is fitted on four fifths of the documents and scored on the rest.

    Parameters
    ----------
    X : sequence of str
        Documents.
    y : array-like
        A label per document.
    minutes : float
        Search time; a running trial is allowed to finish.
    study : Path, optional
        File that stores the trials; an existing study is continued.
    most_trials : int, optional
        Maximal number of trials, including those of an existing study.
    done : callable, optional
        Called with each finished trial.
    runner : Runner, optional
        Runs several trials at once (`mpad.scale.ray_trials`); by default they run one after the other.
    **fixed
        Parameters of `MPADClassifier` that are not searched.

    Returns
    -------
    list of Trial
        All trials, the best first.

    Raises
    ------
    InputError
        If `minutes` is not positive, documents have several labels, or there are too few of them.

    """
    optuna = require("optuna", extra="tune")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    if not minutes > 0:
        raise InputError(f"minutes must be above 0, not {minutes}")
    comparison, runner = _split_documents(X, y), runner or Runner()
    storage = None if study is None else f"sqlite:///{study.resolve()}"
    must_differ, seed = runner.slots > 1, int(fixed.get("random_state") or 0)
    sampler = optuna.samplers.TPESampler(seed=seed, constant_liar=must_differ)
    search = optuna.create_study(
        study_name="mpad", direction="maximize", storage=storage, sampler=sampler, load_if_exists=True
    )
    _run_trials(search, comparison, fixed, runner, time.monotonic() + 60 * minutes, most_trials, done)
    finished = [_as_trial(trial) for trial in search.trials if trial.value is not None]
    return sorted(finished, key=lambda trial: (-trial.log_likelihood, trial.number))


def _run_trials(
    search: Any,
    comparison: Comparison,
    fixed: dict[str, Any],
    runner: Runner,
    end: float,
    most_trials: int | None,
    done: Callable[[Trial], None],
) -> None:
    """Run trials up to a time and a number; at least one, the default first."""
    running: dict[int, Any] = {}

    def wants_more() -> bool:
        ended = sum(trial.state.is_finished() for trial in search.trials)  # without those of a killed search
        started = ended + len(running)
        return not started or (time.monotonic() < end and (most_trials is None or started < most_trials))

    has_default = any(trial.value is not None and not trial.params for trial in search.trials)
    while True:
        while len(running) < runner.slots and wants_more():
            trial = search.ask()
            searched = _suggest_settings(trial) if has_default else {}
            has_default = True
            trial.set_user_attr("settings", {name: searched[name] for name in searched if name not in fixed})
            running[trial.number] = trial
            runner.submit(trial.number, comparison, {**searched, **fixed})
        if not running:
            return
        try:
            number, (likelihood, accuracy) = runner.next_done()
        except BaseException:
            for trial in running.values():
                search.tell(trial, state=require("optuna", extra="tune").trial.TrialState.FAIL)
            raise
        trial = running.pop(number)
        trial.set_user_attr("accuracy", accuracy)
        done(_as_trial(search.tell(trial, likelihood)))


def _split_documents(X: Sequence[str], y: Any) -> Comparison:
    texts, truth = as_examples(X, y)
    labels = learn_labels(truth)
    if labels.multilabel:
        raise InputError("tuning is for single-label data")
    targets = labels.encode(truth)
    training, test = hold_out(targets, _TEST_SHARE, 0, groups=text_groups(texts))
    if not len(test):
        raise InputError("there are too few documents of each class to compare settings on some of them")
    return Comparison(texts, truth, targets, training, test)


def _suggest_settings(trial: Any) -> dict[str, Any]:
    encoder = trial.suggest_categorical("encoder", [AUTO, "none"])
    own = {
        "hidden": trial.suggest_categorical("hidden", [32, 64, 128]),
        "steps": trial.suggest_int("steps", 1, 3),
        "window": trial.suggest_int("window", 2, 4),
    }
    return {
        **({"encoder": None, **own} if encoder == "none" else {"encoder": AUTO}),
        "dropout": trial.suggest_float("dropout", 0.1, 0.7),
        "learning_rate": trial.suggest_float("learning_rate", 5e-4, 1e-2, log=True),
        "max_epochs": trial.suggest_categorical("max_epochs", [8, 15, 25]),
        "tokenizer": trial.suggest_categorical("tokenizer", ["auto", "kim-cased"]),
        "variant": trial.suggest_categorical("variant", ["mpad", "sentence-att", "path"]),
    }


def _as_trial(trial: Any) -> Trial:
    attributes = trial.user_attrs
    return Trial(trial.number, attributes["settings"], trial.value, attributes["accuracy"])


def plot_trials(trials: Sequence[Trial], path: Path) -> None:
    """Draw the log-likelihood of each trial, and the best so far, to a file."""
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
