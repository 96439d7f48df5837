"""What a model says of its training: when, on how much, with which result, and how it went."""

from collections.abc import Sequence
from typing import Any

from mpad._extras import require
from mpad._storage.model_card import model_card
from mpad._training.loop import History
from mpad._training.progress import EpochReport


def training_card(estimator: Any, n_documents: int, n_held: int, histories: Sequence[History]) -> dict[str, Any]:
    """Describe a training that ends now, by what the estimator knows of it."""
    history = histories[0]
    best = history.reports[history.best_epoch - 1] if history.best_epoch else None
    accuracy = None if best is None or not n_held else round(best.validation_accuracy, 4)
    compared = {name.replace("-", "_"): round(value, 4) for name, value in estimator.held_out_accuracy_.items()}
    accuracy = compared.pop("mpad", accuracy)
    temperature = estimator.temperature_
    return model_card(
        n_documents,
        held_out=n_held,
        members=len(histories) if len(histories) > 1 else None,
        epochs=len(history.reports),
        best_epoch=history.best_epoch,
        validation_accuracy=accuracy,
        **{f"validation_accuracy_{name}": value for name, value in compared.items()},
        answers_by=None if estimator.answers_by_ == "mpad" else estimator.answers_by_,
        temperature=None if temperature is None else round(temperature, 4),
        interrupted=estimator.interrupted_ or None,
    )


_NAMES = {"tfidf-svm": "TF-IDF + linear SVM", "linear-stack": "linear stack"}


def held_out_lines(estimator: Any) -> list[str]:
    """How well the model does on held-out documents, what a linear model does there, and what to try next."""
    accuracy = dict(estimator.held_out_accuracy_)
    if not accuracy:
        return []
    own = accuracy.pop("mpad")
    others = ", ".join(f"{_NAMES[name]} {100 * value:.1f} %" for name, value in accuracy.items())
    held = estimator.card_["held_out"]
    lines = [f"held-out accuracy {100 * own:.1f} % ({held:,} documents); on the same ones {others}"]
    if estimator.answers_by_ != "mpad":
        lines.append(f"{_NAMES[estimator.answers_by_]} alone is clearly better there: the model answers by it")
    return lines


def read_history(saved: Any) -> list[EpochReport]:
    """Reports of epochs as a folder keeps them; none where it has none, or what is there is something else."""
    try:
        reports = [EpochReport(**record) for record in saved or []]
    except TypeError:
        return []
    values = [value for report in reports for value in vars(report).values()]
    sound = all(value is None or isinstance(value, (int, float)) for value in values)
    return reports if sound else []


def draw_history(reports: Sequence[EpochReport]) -> Any:
    """Loss and held-out accuracy by epoch: a matplotlib figure."""
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
