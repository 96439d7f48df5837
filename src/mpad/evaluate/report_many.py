"""What a report says of many labels a document: scores, each label right, missed and wrongly given, mistakes."""

from collections.abc import Iterator, Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

from mpad.evaluate.calibration import Calibration
from mpad.evaluate.label_scores import LabelScores
from mpad.evaluate.report_parts import about_lengths, class_table, mistakes_section, reliability, score_box
from mpad.explain import explain
from mpad.explain.page import to_fragment
from mpad.pipeline.document_model import DocumentModel


def many_label_parts(
    model: DocumentModel,
    texts: Sequence[str],
    scores: LabelScores,
    probabilities: NDArray[np.float64],
    telling: str,
    mistakes: int,
) -> list[str]:
    """The sections of the page, in order; `telling` is the one on what speaks for each label."""
    wrong = list(_mistakes(model, texts, scores, probabilities, mistakes))
    said = "Blue words speak for the label that is named first, orange ones against it."
    return [
        _head(texts, scores),
        _by_label(scores, len(model.labels)),
        _sureness(scores, probabilities),
        telling,
        mistakes_section(wrong, said) if mistakes else "",
    ]


def _head(texts: Sequence[str], scores: LabelScores) -> str:
    each = scores.truth.sum(1)
    return (
        f"<div class='row'>{score_box(scores.micro_f1, 'micro-F1')}{score_box(scores.macro_f1, 'macro-F1')}"
        f"{score_box(scores.exact, 'right in all labels')}</div>"
        f"<p class='quiet'>{len(texts):,} documents with {each.mean():.1f} labels in the mean, {each.max():,} at most; "
        f"{int((each == 0).sum()):,} have none. {about_lengths(texts)}</p>"
    )


def _by_label(scores: LabelScores, n_known: int) -> str:
    counts = {"documents": scores.right + scores.missed, "right": scores.right}
    counts |= {"missed": scores.missed, "wrongly given": scores.wrong}
    unknown = scores.names[n_known:]
    note = f" The model does not know {escape(', '.join(unknown[:10]))}, and misses it." if unknown else ""
    return (
        "<h2>Each label</h2><p class='quiet'>Missed: documents that have the label and were not given it; wrongly "
        f"given: the other way about.{note}</p>"
        f"{class_table(scores.names, scores.precision, scores.recall, scores.f1, counts)}"
    )


def _sureness(scores: LabelScores, probabilities: NDArray[np.float64]) -> str:
    calibration = Calibration(probabilities.ravel(), scores.truth[:, : probabilities.shape[1]].ravel())
    return (
        "<h2>How far its probabilities hold</h2>"
        f"<p class='quiet'>Expected calibration error {calibration.error:.3f}, over every label of every document: the "
        "mean distance between how likely a label was said to be and how often documents had it.</p>"
        f"<div class='columns'>{reliability(calibration, 'of labels and documents')}</div>"
    )


def _mistakes(
    model: DocumentModel, texts: Sequence[str], scores: LabelScores, probabilities: NDArray[np.float64], most: int
) -> Iterator[str]:
    """The surest mistake of each document, the surest first: a label that was given wrongly, or missed."""
    n_known = len(model.labels)
    given, wrong = scores.given[:, :n_known], (scores.given ^ scores.truth)[:, :n_known]
    sure = np.where(wrong, np.where(given, probabilities, 1 - probabilities), -1.0)
    worst = sure.argmax(1)
    for k in sorted(np.flatnonzero(wrong.any(1)).tolist(), key=lambda k: -sure[k, worst[k]])[:most]:
        column = int(worst[k])
        how = f"{'wrongly given' if given[k, column] else 'missed'} ({100 * sure[k, column]:.0f} % sure)"
        yield (
            f"<div class='mistake'><p><b>{escape(scores.names[column])}</b>, {how}, document {k + 1}; "
            f"it has {_listed(scores, scores.truth[k])}, and was given "
            f"{_listed(scores, scores.given[k])}</p>"
            f"{to_fragment(explain(model, texts[k], model.labels.classes[column]), graph=False)}</div>"
        )


def _listed(scores: LabelScores, row: NDArray[np.bool_]) -> str:
    names = [f"<b>{escape(name)}</b>" for name, on in zip(scores.names, row, strict=True) if on]
    return ", ".join(names) or "none"
