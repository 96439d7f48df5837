"""Describe a training: when, on how much data, its scores, and the course of its loss."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpad.config import FEW_LABELS
from mpad.data.equal_texts import Copies, count_copies
from mpad.data.labels import Labels
from mpad.errors import InputError
from mpad.estimator.held_out_scores import HeldOutScores
from mpad.extras import install_command, require
from mpad.files.safe_json import as_settings
from mpad.inference.pipeline import Pipeline
from mpad.storage.model_folder import model_card
from mpad.training.loop import History
from mpad.training.progress import EpochReport


def training_card(estimator: Any, n_documents: int, n_held: int, histories: Sequence[History]) -> dict[str, Any]:
    """Describe the training of an estimator that was just fitted."""
    history = histories[0]
    best = history.reports[history.best_epoch - 1] if history.best_epoch else None
    accuracy = None if best is None or not n_held else round(best.validation_accuracy, 4)
    compared = {name.replace("-", "_"): round(value, 4) for name, value in estimator.held_out_accuracy_.items()}
    accuracy = compared.pop("mpad", accuracy)
    scores: HeldOutScores | None = estimator.held_out_
    if scores is not None and scores.majority is not None:
        accuracy = round(scores.accuracy.value, 4)
        compared |= {"low": round(scores.accuracy.low, 4), "high": round(scores.accuracy.high, 4)}
        compared |= {"majority": round(scores.majority[1], 4)}
    elif scores is not None:
        accuracy, compared = None, {}
    temperature = estimator.temperature_
    return model_card(
        n_documents,
        held_out=n_held,
        members=len(histories) if len(histories) > 1 else None,
        epochs=len(history.reports),
        best_epoch=history.best_epoch,
        validation_accuracy=accuracy,
        **{f"validation_accuracy_{name}": value for name, value in compared.items()},
        validation_macro_f1=None if scores is None else round(scores.macro_f1, 4),
        validation_micro_f1=round(scores.accuracy.value, 4) if scores is not None and scores.multilabel else None,
        answers_by=None if estimator.answers_by_ == "mpad" else estimator.answers_by_,
        temperature=None if temperature is None else round(temperature, 4),
        interrupted=estimator.interrupted_ or None,
    )


@dataclass(frozen=True)
class TrainingSummary:
    """Training documents in numbers: how many, of which classes, and copies among them."""

    documents: int
    classes: tuple[tuple[str, int], ...]  # names and counts, most frequent first
    copies: Copies

    @classmethod
    def of(cls, labels: Labels, targets: NDArray[Any], groups: NDArray[Any]) -> "TrainingSummary":
        """Count documents, classes and copies."""
        counts = np.bincount(targets, minlength=len(labels)) if targets.ndim == 1 else (targets > 0.5).sum(0)
        order = np.argsort(-counts, kind="stable").tolist()
        names = [str(name) for name in labels.classes.tolist()]
        return cls(len(targets), tuple((names[k], int(counts[k])) for k in order), count_copies(groups, targets))

    def lines(self) -> list[str]:
        """Describe it for people."""
        shown = [f"{name} {n:,} ({100 * n / max(self.documents, 1):.1f} %)" for name, n in self.classes[:_MOST_NAMED]]
        rest = self.classes[_MOST_NAMED:]
        if rest:
            shown.append(f"{len(rest)} more, the smallest {rest[-1][0]} {rest[-1][1]:,}")
        lines = [f"{self.documents:,} documents, {len(self.classes)} classes: {', '.join(shown)}"]
        return [*lines, str(self.copies)] if self.copies.documents else lines


_FEW_ONLY = f"they are for fewer than {FEW_LABELS} labeled documents, with the encoder and default training settings"


@dataclass(frozen=True)
class UnlabeledUse:
    """Use of texts without labels in a fit, and the accuracies that decided it."""

    documents: int
    labeled_by: str | None = None  # what gave them soft labels; None: they were not used
    accuracies: dict[str, float] = field(default_factory=dict)  # cross-validated, by source of labels; "" is without

    @property
    def used(self) -> bool:
        """True if the model was trained on these texts."""
        return self.labeled_by is not None

    def __str__(self) -> str:
        texts = f"{self.documents:,} texts without labels"
        if not self.accuracies:
            return f"{texts} not used: {_FEW_ONLY}"
        before = 100 * self.accuracies[""]
        if self.labeled_by is not None:
            after = 100 * self.accuracies[self.labeled_by]
            return f"{texts} labeled by {self.labeled_by}: accuracy {before:.1f} → {after:.1f} % by cross-validation"
        tried = ", ".join(f"{name} {100 * value:.1f} %" for name, value in self.accuracies.items() if name)
        if not tried:
            return f"{texts} not used: no sentence encoder is installed to label them ({install_command('pretrain')})"
        return f"{texts} not used: no clear gain by cross-validation (without {before:.1f} %; labeled by {tried})"


_FEW_KNOWN = 0.5
_MOST_NAMED = 8  # classes that are listed
_PARTS = {"ngram-svm": "the n-gram SVM", "ngram-stack": "the n-gram regression"}


def closing_lines(estimator: Any) -> list[str]:
    """Describe a fitted model: its training documents, its scores on held-out ones, and what to beware of."""
    lines: list[str] = [] if estimator.summary_ is None else estimator.summary_.lines()
    if estimator.known_words_ is not None and estimator.known_words_[1]:
        known, words = estimator.known_words_
        knows = "the word vectors know" if estimator.encoder_ is None else "the encoder knows"
        lines.append(f"{knows} {known:,} of {words:,} distinct words ({100 * known / words:.0f} %)")
        if estimator.encoder_ is None and known < _FEW_KNOWN * words:
            lines.append("warning: the word vectors know few of these words; are they of another language?")
    if estimator.start_.reason:
        lines.append(estimator.start_.reason)
    if estimator.unlabeled_ is not None:
        lines.append(str(estimator.unlabeled_))
    if estimator.class_names_used_ == 0:
        lines.append(f"class names not used: {_FEW_ONLY}")
    elif estimator.class_names_used_ is not None:
        lines.append(f"class names were used as training texts, for {estimator.class_names_used_} classes")
    if estimator.held_out_ is None:
        lines.append("nothing was held out: too few documents per class, so there is no score that can be trusted")
        return lines
    lines += estimator.held_out_.lines()
    if estimator.answers_by_ != "mpad":
        lines.append(f"{_PARTS[estimator.answers_by_]} alone is clearly better there: the model predicts with it")
    return lines


def read_history(saved: Any) -> list[EpochReport]:
    """Return the reports of epochs in a model folder; none if there are none or they are damaged."""
    try:
        return [as_settings(EpochReport, record, InputError) for record in saved or []]
    except (InputError, TypeError):
        return []


def draw_history(reports: Sequence[EpochReport]) -> Any:
    """Draw loss and held-out accuracy by epoch: a matplotlib figure."""
    figure = require("matplotlib.figure", extra="plots").Figure(figsize=(8, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    epochs = [report.epoch for report in reports]
    left.plot(epochs, [report.train_loss for report in reports], label="training")
    left.plot(epochs, [report.validation_loss for report in reports], label="held out")
    left.set(xlabel="epoch", ylabel="loss")
    left.legend()
    right.plot(epochs, [100 * report.validation_accuracy for report in reports], color="C1")
    right.set(xlabel="epoch", ylabel="held-out accuracy of the network (%)")
    return figure


def model_facts(model: Pipeline) -> dict[str, Any]:
    """Return facts about a fitted network, for people."""
    network, config, transformer = model.network, model.network.config, model.transformer
    facts = {
        "model": model.kind,
        "classes": [str(label) for label in model.labels.classes],
        "multilabel": model.labels.multilabel,
        "words": len(model.vocabulary),
        "words seen in training": model.vocabulary.seen,
        "vector width": config.vector_width,
        "vectors": "learnt" if config.learn_vectors else "fixed" if transformer is None else "of a transformer",
        "parameters": sum(parameter.numel() for parameter in network.parameters()),
        "tokenizer": model.tokenizer.name,
    }
    if model.kind != "mpad":
        return facts
    return {
        **facts,
        **({"members": config.members} if config.members > 1 else {}),
        "variant": config.variant,
        "steps": config.steps,
        "hidden": config.hidden,
        "window": model.graph_config.window,
        "directed": model.graph_config.directed,
        **({} if transformer is None else {"features": transformer.name}),
        "potentials": 0 if model.potentials is None else len(model.potentials.idf),
    }
