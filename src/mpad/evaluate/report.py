"""Evaluation of a model as one self-contained HTML page without scripts.

It shows scores with intervals, confusions, calibration, the top features of each class, and explained mistakes.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from html import escape
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import confusion_matrix

from mpad.estimator.held_out_scores import Share
from mpad.evaluate.calibration import Calibration
from mpad.evaluate.class_scores import ClassScores, evaluate
from mpad.evaluate.html import html_page, html_table, number_cell, text_cell
from mpad.evaluate.label_scores import LabelScores, Measured
from mpad.explain import DEFAULT, explain
from mpad.explain.corpus import class_features
from mpad.explain.drift import drift
from mpad.explain.page import to_fragment
from mpad.inference.pipeline import Pipeline

Floats = NDArray[np.float64]
_MAX_EXPLAINED = 200  # documents explained for the top features
_MAX_CLASSES = 30  # in a readable confusion matrix


class _Mistake(NamedTuple):
    """Document with a wrong label, and the label to explain."""

    document: int
    label: Any
    caption: str


class _Evaluation(NamedTuple):
    """Sections on the scores, the meaning of the colors, and the mistakes, most confident first."""

    sections: str
    legend: str
    mistakes: Iterator[_Mistake]


def make_report(
    classifier: Any,
    texts: Sequence[str],
    truth: Sequence[Any],
    name: str,
    against: Sequence[str] | None = None,
    mistakes: int = 8,
    done: Callable[[], None] = lambda: None,
    ids: Sequence[str] | None = None,
) -> str:
    """Return the report as an HTML page.

    Parameters
    ----------
    classifier : MPADClassifier
        The fitted model.
    texts, truth : sequence
        Documents and their labels.
    name : str
        Title of the page.
    against : sequence of str, optional
        Documents, such as the training documents, to measure drift against.
    mistakes : int, default=8
        Number of mistakes to explain.
    done : callable, optional
        Called after each explained document.
    ids : sequence of str, optional
        Names of the documents, by default their numbers.

    Returns
    -------
    str
        Self-contained HTML.

    """
    model: Pipeline = classifier.model_
    names = [str(one) for one in (ids or range(1, len(texts) + 1))]
    scores = evaluate(classifier, texts, truth)
    if isinstance(scores, LabelScores):
        sections, legend, wrong = _evaluate_labels(model, texts, scores, names)
    else:
        sections, legend, wrong = _evaluate_classes(texts, scores, names)
    parts = [f"<h1>{escape(name)}</h1>", _about_model(classifier.card_), sections, _top_features(model, texts, done)]
    if mistakes:
        parts.append(_explain_mistakes(model, texts, islice(wrong, mistakes), legend))
    if against is not None:
        parts.append(_drift(model, against, texts))
    return html_page(f"{name}: report", parts)


def _about_model(card: Mapping[str, Any]) -> str:
    """Return the date, size and held-out accuracy of the training."""
    held, svm = card.get("validation_accuracy"), card.get("validation_accuracy_tfidf_svm")
    facts = [
        f"trained {str(card['trained'])[:10]} on {card['documents']:,} documents" if "trained" in card else "",
        f"held-out accuracy: {100 * held:.1f} %" if isinstance(held, float) else "",
        f"TF-IDF + linear SVM on the same: {100 * svm:.1f} %" if isinstance(svm, float) else "",
    ]
    return f"<p class='quiet'>{escape('; '.join(fact for fact in facts if fact))}</p>"


def _evaluate_classes(texts: Sequence[str], scores: ClassScores, names: Sequence[str]) -> _Evaluation:
    calibration = scores.calibration()
    assert calibration is not None
    *measures, support = scores.per_class
    most, share = scores.majority
    parts = (
        f"<div class='row'>{_score_box(scores.accuracy, 'right')}</div>"
        f"<p class='quiet'>{len(texts):,} documents. Always predicting '{escape(most)}' would be right for "
        f"{100 * share:.1f} %. {_about_lengths(texts)}</p>"
        f"<h2>Each class</h2>{_class_table(scores.classes, measures, {'documents': support})}",
        _confusions(scores),
        _calibration(
            calibration,
            ": the mean distance between confidence and accuracy. Points on the line are perfectly calibrated.",
            "the documents",
            _coverage_table(calibration),
        ),
    )
    legend = "Blue words support the prediction, orange ones oppose it."
    return _Evaluation("".join(parts), legend, _class_mistakes(scores, names))


def _evaluate_labels(model: Pipeline, texts: Sequence[str], scores: LabelScores, names: Sequence[str]) -> _Evaluation:
    probabilities = model.predict_proba(list(texts))
    each = scores.truth.sum(1)
    counts = {"documents": scores.right + scores.missed, "right": scores.right}
    counts |= {"missed": scores.missed, "wrongly given": scores.wrong}
    unknown = escape(", ".join(scores.unknown[:10]))
    note = f" The model does not know {unknown}, so it is always missed." if unknown else ""
    parts = (
        f"<div class='row'>{_score_box(scores.micro_f1, 'micro-F1')}{_score_box(scores.macro_f1, 'macro-F1')}"
        f"{_score_box(scores.exact, 'right in all labels')}</div>"
        f"<p class='quiet'>{len(texts):,} documents with {each.mean():.1f} labels on average, {each.max():,} at most; "
        f"{int((each == 0).sum()):,} have none. {_about_lengths(texts)}</p>"
        "<h2>Each label</h2><p class='quiet'>Missed: documents with the label, predicted without it; wrongly "
        f"given: documents without the label, predicted with it.{note}</p>"
        f"{_class_table(scores.names, (scores.precision, scores.recall, scores.f1), counts)}",
        _calibration(
            Calibration(probabilities.ravel(), scores.truth[:, : len(model.labels)].ravel()),
            ", over all labels of all documents: the mean distance between the probability of a label and its "
            "frequency.",
            "labels and documents",
        ),
    )
    legend = "Blue words support the label named first, orange ones oppose it."
    return _Evaluation("".join(parts), legend, _label_mistakes(model, scores, probabilities, names))


def _about_lengths(texts: Sequence[str]) -> str:
    words = np.array([len(text.split()) for text in texts])
    return f"The median length is {np.median(words):.0f} words, the maximum {words.max():,}."


def _score_box(measured: Measured | Share, name: str) -> str:
    low, high = (
        (measured.low, measured.high)
        if isinstance(measured, Share)
        else (max(0.0, measured.value - measured.margin), min(1.0, measured.value + measured.margin))
    )
    interval = f"95 % interval {100 * low:.1f} to {100 * high:.1f}"
    return f"<div><span class='score'>{100 * measured.value:.1f} %</span> {name} ({interval})</div>"


def _class_table(names: Sequence[str], measures: Sequence[NDArray[Any]], counts: Mapping[str, NDArray[Any]]) -> str:
    """Return a table with one row per class: counts, precision, recall, F1 and a bar for F1."""
    columns = [[f"{n:,}" for n in column.tolist()] for column in counts.values()]
    columns += [[f"{score:.3f}" for score in measure] for measure in measures]
    bars = [f"<td class='wide'><span class='bar' style='width:{6 * f1:.2f}rem'></span></td>" for f1 in measures[-1]]
    rows = (
        [text_cell(name), *map(number_cell, cells), bar]
        for name, bar, *cells in zip(names, bars, *columns, strict=True)
    )
    return html_table(["class", *counts, "precision", "recall", "F1"], rows)


def _confusions(scores: ClassScores) -> str:
    counts = Counter([*scores.truth, *scores.predicted])
    classes = sorted(name for name, _ in counts.most_common(_MAX_CLASSES))
    matrix = confusion_matrix(scores.truth, scores.predicted, labels=classes)
    diagonal = np.eye(len(classes), dtype=bool)
    most = {True: max(int(matrix[diagonal].max(initial=0)), 1), False: max(int(matrix[~diagonal].max(initial=0)), 1)}

    def shade(n: int, right: bool) -> str:
        """Return the color of a cell; mistakes have their own scale, as they are few and matter most."""
        strength = 0.12 + 0.5 * n / most[right] if n else 0.0
        return f"background: rgba(var(--{'mark' if right else 'miss'}), {strength:.2f})"

    rows = []
    for k, name in enumerate(classes):
        cells = "".join(f"<td style='{shade(n, k == j)}'>{n or ''}</td>" for j, n in enumerate(matrix[k].tolist()))
        rows.append(f"<tr><th>{escape(name)}</th>{cells}</tr>")
    head = "".join(f"<th><span>{escape(name)}</span></th>" for name in classes)
    note = "" if len(counts) <= _MAX_CLASSES else f" The {_MAX_CLASSES} most frequent classes."
    return (
        f"<h2>Confusions</h2><p class='quiet'>Rows: the true class; columns: the predicted class.{note}</p>"
        f"<div class='scroll'><table class='confusion'><tr><th></th>{head}</tr>{''.join(rows)}</table></div>"
    )


def _calibration(calibration: Calibration, meaning: str, of: str, table: str = "") -> str:
    """Return the calibration error, with its meaning, and a plot of a point per bin; `of` names what is counted."""
    points = "".join(
        f"<circle cx='{10 + 200 * x:.1f}' cy='{210 - 200 * y:.1f}' r='{3 + 14 * s**0.5:.1f}' fill='rgb(var(--mark))' "
        f"fill-opacity='.7'><title>{100 * x:.0f} % confident, {100 * y:.0f} % right, {100 * s:.0f} % of {of}"
        "</title></circle>"
        for x, y, s in zip(*calibration.reliability(), strict=True)
    )
    return (
        f"<h2>Calibration</h2><p class='quiet'>Expected calibration error {calibration.error:.3f}{meaning}</p>"
        "<div class='columns'>"
        "<svg width='240' height='240' viewBox='0 0 240 240' role='img' aria-label='reliability'>"
        "<rect x='10' y='10' width='200' height='200' fill='none' stroke='var(--line)'/>"
        "<line x1='10' y1='210' x2='210' y2='10' stroke='var(--faint)' stroke-dasharray='4 4'/>"
        f"{points}<text x='110' y='234' text-anchor='middle' font-size='12' fill='var(--faint)'>confidence</text>"
        "<text x='226' y='110' text-anchor='middle' font-size='12' fill='var(--faint)' transform='rotate(90 226 110)'>"
        f"accuracy</text></svg>{table}</div>"
    )


def _coverage_table(calibration: Calibration) -> str:
    shares, accuracies = calibration.coverage()
    rows = (
        [number_cell(f"{100 * shares[k]:.0f} %"), number_cell(f"{100 * accuracies[k]:.1f} %")]
        for k in (1, 4, 9, 14, 19)
    )
    return html_table(["most confident", "right"], rows)


def _top_features(model: Pipeline, texts: Sequence[str], done: Callable[[], None]) -> str:
    sample = list(texts[:: max(1, len(texts) // _MAX_EXPLAINED)])[:_MAX_EXPLAINED]
    rows = (
        [
            f"<td><b>{escape(str(one.label))}</b></td>",
            text_cell(", ".join(word.text for word in one.words) or "—"),
            text_cell(", ".join(edge.text for edge in one.edges[:5]) or "—"),
        ]
        for one in class_features(model, sample, DEFAULT, 8, done)
        if one.documents
    )
    return (
        "<h2>Top features per class</h2>"
        f"<p class='quiet'>Words and pairs of words with the largest weights over {len(sample):,} of these documents."
        f"</p>{html_table(['class', 'words', 'pairs'], rows)}"
    )


def _class_mistakes(scores: ClassScores, names: Sequence[str]) -> Iterator[_Mistake]:
    """Yield the mistakes, most confident first."""
    confidence = scores.confidence
    assert confidence is not None
    for k in sorted(np.flatnonzero(~scores.right).tolist(), key=lambda k: -confidence[k]):
        caption = (
            f"document {escape(names[k])}: <b>{escape(scores.truth[k])}</b>, predicted as "
            f"<b>{escape(scores.predicted[k])}</b> with a probability of {100 * confidence[k]:.0f} %"
        )
        yield _Mistake(k, scores.predicted[k], caption)


def _label_mistakes(
    model: Pipeline, scores: LabelScores, probabilities: Floats, names: Sequence[str]
) -> Iterator[_Mistake]:
    """Yield the most confident mistake of each document, most confident first: a wrongly given or missed label."""
    n_known = len(model.labels)
    predicted, wrong = scores.predicted[:, :n_known], (scores.predicted ^ scores.truth)[:, :n_known]
    confidence = np.where(wrong, np.where(predicted, probabilities, 1 - probabilities), -1.0)
    worst = confidence.argmax(1)
    for k in sorted(np.flatnonzero(wrong.any(1)).tolist(), key=lambda k: -confidence[k, worst[k]]):
        column = int(worst[k])
        error = "wrongly given" if predicted[k, column] else "missed"
        caption = (
            f"<b>{escape(scores.names[column])}</b>, {error} ({100 * confidence[k, column]:.0f} % confident), document "
            f"{escape(names[k])}; it has {_join_labels(scores, scores.truth[k])}, and was given "
            f"{_join_labels(scores, scores.predicted[k])}"
        )
        yield _Mistake(k, model.labels.classes[column], caption)


def _join_labels(scores: LabelScores, row: NDArray[np.bool_]) -> str:
    names = [f"<b>{escape(name)}</b>" for name, on in zip(scores.names, row, strict=True) if on]
    return ", ".join(names) or "none"


def _explain_mistakes(model: Pipeline, texts: Sequence[str], mistakes: Iterable[_Mistake], legend: str) -> str:
    parts = [
        f"<div class='mistake'><p>{one.caption}</p>"
        f"{to_fragment(explain(model, texts[one.document], one.label), graph=False, heading=False)}</div>"
        for one in mistakes
    ]
    if not parts:
        return "<h2>Mistakes</h2><p>None.</p>"
    return (
        f"<h2>The most confident mistakes, and why</h2><p class='quiet'>{legend} Some of these labels may be wrong.</p>"
        f"{''.join(parts)}"
    )


def _drift(model: Pipeline, before: Sequence[str], now: Sequence[str]) -> str:
    rows = (
        [
            text_cell(one.what),
            number_cell(f"{one.first:.3f}"),
            number_cell(f"{one.second:.3f}"),
            number_cell(f"{one.difference:+.3f} ± {one.error:.3f}"),
            text_cell("differs" if one.clear else ""),
        ]
        for one in drift(model, before, now)
    )
    return f"<h2>Drift</h2>{html_table(['', 'then', 'now', 'difference (95 %)', ''], rows)}"
