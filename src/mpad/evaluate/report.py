"""Evaluation of a model as one self-contained HTML page without scripts.

It shows scores with intervals, confusions, calibration, the top features of each class, and explained mistakes.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import confusion_matrix

from mpad.estimator.held_out_scores import Share
from mpad.evaluate.calibration import Calibration
from mpad.evaluate.class_scores import ClassScores
from mpad.evaluate.label_scores import LabelScores, Measured, score_labels
from mpad.explain import DEFAULT, explain
from mpad.explain.corpus import ClassFeatures, class_features
from mpad.explain.drift import Drift, drift
from mpad.explain.page import to_fragment
from mpad.inference.pipeline import Pipeline

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2126; --faint: #525c66; --line: #ccd3da; --page: #ffffff; --mark: 23,
  121, 106; --miss: 189, 47, 116; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8edf3; --faint: #a4adb8; --line: #3d444d; --page: #0d1117;
  --mark: 69, 196, 173; --miss: 242, 125, 178; } }
body { font: 16px/1.6 system-ui, sans-serif; color: var(--ink); background: var(--page); max-width: 64rem; margin: 0
  auto; padding: 1.4rem; }
h1 { font-size: 1.6rem; margin: 0; } h2 { margin: 2.2rem 0 .4rem; font-size: 1.2rem; }
.quiet { color: var(--faint); font-size: .9rem; } .score { font-size: 2.2rem; font-weight: 700; }
.row { display: flex; flex-wrap: wrap; gap: .6rem 3rem; align-items: flex-end; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
td, th { padding: .12rem .7rem .12rem 0; text-align: left; } th { color: var(--faint); font-weight: 600; }
.number { text-align: right; } .scroll { overflow: auto; } .confusion td { padding: .1rem .45rem; text-align: right; }
.confusion tr:first-child th { vertical-align: bottom; padding: 0 .2rem .3rem; }
.confusion tr:first-child span { writing-mode: vertical-rl; transform: rotate(180deg); max-height: 14rem; }
@media (max-width: 36rem) { body { padding: .8rem; } table { font-size: .78rem; } .wide { display: none; }
  td, th { padding: .1rem .4rem .1rem 0; } .confusion td { padding: .1rem .2rem; } }
.bar { display: inline-block; height: .7em; border-radius: .2em; background: rgb(var(--mark)); }
.mistake { border-left: 3px solid var(--line); padding-left: .8rem; margin: 1rem 0; }
.mistake .mpad { max-width: none; margin: 0; padding: 0; background: none; }
.columns { display: flex; flex-wrap: wrap; gap: 1rem 3rem; } svg { max-width: 100%; height: auto; overflow: visible; }
"""
_MAX_EXPLAINED = 200  # documents explained for the top features
_MAX_CLASSES = 30  # in a readable confusion matrix


@dataclass(frozen=True)
class _Evaluation:
    """Predictions of a single-label model on labeled documents."""

    texts: Sequence[str]
    scores: ClassScores
    ids: Sequence[str] | None = None  # ids of the documents in their file

    def document_name(self, k: int) -> str:
        """Return the id of a document, or its number if it has none."""
        return f"document {k + 1}" if self.ids is None else f"document {self.ids[k]}"


def make_report(
    model: Pipeline,
    texts: Sequence[str],
    truth: Sequence[Any],
    card: dict[str, Any],
    name: str,
    against: Sequence[str] | None = None,
    mistakes: int = 8,
    done: Callable[[], None] = lambda: None,
    ids: Sequence[str] | None = None,
) -> str:
    """Return the report as an HTML page.

    Parameters
    ----------
    model : Pipeline
        The model of a fitted classifier: `classifier.model_`.
    texts, truth : sequence
        Documents and their labels.
    card : dict
        The model card: `classifier.card_`.
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
    probabilities = model.predict_proba(list(texts))
    sample = list(texts[:: max(1, len(texts) // _MAX_EXPLAINED)])[:_MAX_EXPLAINED]
    features = _feature_table(class_features(model, sample, DEFAULT, 8, done), len(sample))
    about = f"<h1>{escape(name)}</h1>{_about_model(card)}"
    if model.labels.multilabel:
        scores = score_labels(model.labels, truth, model.labels.apply_thresholds(probabilities))
        parts = [about, *_multilabel_sections(model, texts, scores, probabilities, features, mistakes)]
    else:
        classes = [str(label) for label in model.labels.classes]
        predicted = [classes[column] for column in probabilities.argmax(1)]
        single = ClassScores(classes, [str(label) for label in truth], predicted, probabilities.max(1))
        results = _Evaluation(texts, single, ids)
        parts = [about, _header(results), _per_class(results), _confusions(results), _calibration(results), features]
        parts.append(_mistakes(model, results, mistakes) if mistakes else "")
    parts.append("" if against is None else _drift_table(drift(model, against, texts)))
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(name)}: report</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{_STYLE}</style></head><body>{''.join(parts)}</body></html>\n"
    )


def _header(results: _Evaluation) -> str:
    most, share = results.scores.majority
    return (
        f"<div class='row'>{_score_box(results.scores.accuracy, 'right')}</div>"
        f"<p class='quiet'>{len(results.texts):,} documents. Always predicting '{escape(most)}' would be right for "
        f"{100 * share:.1f} %. {_about_lengths(results.texts)}</p>"
    )


def _per_class(results: _Evaluation) -> str:
    precision, recall, f1, support = results.scores.per_class
    table = _class_table(results.scores.classes, precision, recall, f1, {"documents": support})
    return f"<h2>Each class</h2>{table}"


def _confusions(results: _Evaluation) -> str:
    counts = Counter([*results.scores.truth, *results.scores.predicted])
    classes = sorted(name for name, _ in counts.most_common(_MAX_CLASSES))
    matrix = confusion_matrix(results.scores.truth, results.scores.predicted, labels=classes)
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


def _calibration(results: _Evaluation) -> str:
    calibration = results.scores.calibration()
    assert calibration is not None
    shares, accuracies = calibration.coverage()
    rows = "".join(
        f"<tr><td class='number'>{100 * shares[k]:.0f} %</td><td class='number'>{100 * accuracies[k]:.1f} %</td></tr>"
        for k in (1, 4, 9, 14, 19)
    )
    return (
        "<h2>Calibration</h2>"
        f"<p class='quiet'>Expected calibration error {calibration.error:.3f}: the mean distance between "
        "confidence and accuracy. Points on the line are perfectly calibrated.</p><div class='columns'>"
        f"{_reliability_plot(calibration, 'of the documents')}"
        f"<table><tr><th>most confident</th><th>right</th></tr>{rows}</table></div>"
    )


def _feature_table(views: Sequence[ClassFeatures], n: int) -> str:
    rows = "".join(
        f"<tr><td><b>{escape(str(view.label))}</b></td>"
        f"<td>{escape(', '.join(one.text for one in view.words) or '—')}</td>"
        f"<td>{escape(', '.join(one.text for one in view.edges[:5]) or '—')}</td></tr>"
        for view in views
        if view.documents
    )
    return (
        "<h2>Top features per class</h2>"
        f"<p class='quiet'>Words and pairs of words with the largest weights over {n:,} of these documents.</p>"
        f"<div class='scroll'><table><tr><th>class</th><th>words</th><th>pairs</th></tr>{rows}</table></div>"
    )


def _mistakes(model: Pipeline, results: _Evaluation, most: int) -> str:
    scores, confidence = results.scores, results.scores.confidence
    assert confidence is not None
    wrong = sorted(np.flatnonzero(~scores.right).tolist(), key=lambda k: -confidence[k])[:most]
    parts = [
        f"<div class='mistake'><p>{escape(results.document_name(k))}: <b>{escape(scores.truth[k])}</b>, predicted as "
        f"<b>{escape(scores.predicted[k])}</b> with a probability of {100 * confidence[k]:.0f} %</p>"
        f"{to_fragment(explain(model, results.texts[k]), graph=False, heading=False)}</div>"
        for k in wrong
    ]
    return _mistakes_section(parts, "Blue words support the prediction, orange ones oppose it.")


def _drift_table(measured: Sequence[Drift]) -> str:
    rows = "".join(
        f"<tr><td>{escape(one.what)}</td><td class='number'>{one.first:.3f}</td>"
        f"<td class='number'>{one.second:.3f}</td>"
        f"<td class='number'>{one.difference:+.3f} ± {one.error:.3f}</td><td>{'differs' if one.clear else ''}</td></tr>"
        for one in measured
    )
    head = "<tr><th></th><th>then</th><th>now</th><th>difference (95 %)</th><th></th></tr>"
    return f"<h2>Drift</h2><div class='scroll'><table>{head}{rows}</table></div>"


def _multilabel_sections(
    model: Pipeline,
    texts: Sequence[str],
    scores: LabelScores,
    probabilities: NDArray[np.float64],
    features: str,
    mistakes: int,
) -> list[str]:
    """Return the sections for a multi-label model; `features` is the ready section on the top features."""
    wrong = list(_multilabel_mistakes(model, texts, scores, probabilities, mistakes))
    legend = "Blue words support the label named first, orange ones oppose it."
    return [
        _multilabel_header(texts, scores),
        _label_table(scores, len(model.labels)),
        _multilabel_calibration(scores, probabilities),
        features,
        _mistakes_section(wrong, legend) if mistakes else "",
    ]


def _multilabel_header(texts: Sequence[str], scores: LabelScores) -> str:
    each = scores.truth.sum(1)
    return (
        f"<div class='row'>{_score_box(scores.micro_f1, 'micro-F1')}{_score_box(scores.macro_f1, 'macro-F1')}"
        f"{_score_box(scores.exact, 'right in all labels')}</div>"
        f"<p class='quiet'>{len(texts):,} documents with {each.mean():.1f} labels on average, {each.max():,} at most; "
        f"{int((each == 0).sum()):,} have none. {_about_lengths(texts)}</p>"
    )


def _label_table(scores: LabelScores, n_known: int) -> str:
    counts = {"documents": scores.right + scores.missed, "right": scores.right}
    counts |= {"missed": scores.missed, "wrongly given": scores.wrong}
    unknown = scores.names[n_known:]
    note = f" The model does not know {escape(', '.join(unknown[:10]))}, so it is always missed." if unknown else ""
    return (
        "<h2>Each label</h2><p class='quiet'>Missed: documents with the label, predicted without it; wrongly "
        f"given: documents without the label, predicted with it.{note}</p>"
        f"{_class_table(scores.names, scores.precision, scores.recall, scores.f1, counts)}"
    )


def _multilabel_calibration(scores: LabelScores, probabilities: NDArray[np.float64]) -> str:
    calibration = Calibration(probabilities.ravel(), scores.truth[:, : probabilities.shape[1]].ravel())
    return (
        "<h2>Calibration</h2>"
        f"<p class='quiet'>Expected calibration error {calibration.error:.3f}, over all labels of all documents: the "
        "mean distance between the probability of a label and its frequency.</p>"
        f"<div class='columns'>{_reliability_plot(calibration, 'of labels and documents')}</div>"
    )


def _multilabel_mistakes(
    model: Pipeline, texts: Sequence[str], scores: LabelScores, probabilities: NDArray[np.float64], most: int
) -> Iterator[str]:
    """Yield the most confident mistake of each document, most confident first: a wrongly given or missed label."""
    n_known = len(model.labels)
    predicted, wrong = scores.predicted[:, :n_known], (scores.predicted ^ scores.truth)[:, :n_known]
    confidence = np.where(wrong, np.where(predicted, probabilities, 1 - probabilities), -1.0)
    worst = confidence.argmax(1)
    for k in sorted(np.flatnonzero(wrong.any(1)).tolist(), key=lambda k: -confidence[k, worst[k]])[:most]:
        column = int(worst[k])
        error = (
            f"{'wrongly given' if predicted[k, column] else 'missed'} ({100 * confidence[k, column]:.0f} % confident)"
        )
        yield (
            f"<div class='mistake'><p><b>{escape(scores.names[column])}</b>, {error}, document {k + 1}; "
            f"it has {_join_labels(scores, scores.truth[k])}, and was given "
            f"{_join_labels(scores, scores.predicted[k])}</p>"
            f"{to_fragment(explain(model, texts[k], model.labels.classes[column]), graph=False)}</div>"
        )


def _join_labels(scores: LabelScores, row: NDArray[np.bool_]) -> str:
    names = [f"<b>{escape(name)}</b>" for name, on in zip(scores.names, row, strict=True) if on]
    return ", ".join(names) or "none"


def _about_model(card: Mapping[str, Any]) -> str:
    """Return the date, size and held-out accuracy of the training."""
    held, svm = card.get("validation_accuracy"), card.get("validation_accuracy_tfidf_svm")
    facts = [
        f"trained {str(card['trained'])[:10]} on {card['documents']:,} documents" if "trained" in card else "",
        f"held-out accuracy: {100 * held:.1f} %" if isinstance(held, float) else "",
        f"TF-IDF + linear SVM on the same: {100 * svm:.1f} %" if isinstance(svm, float) else "",
    ]
    return f"<p class='quiet'>{escape('; '.join(fact for fact in facts if fact))}</p>"


def _about_lengths(texts: Sequence[str]) -> str:
    """Return a sentence on the lengths of documents."""
    words = np.array([len(text.split()) for text in texts])
    return f"The median length is {np.median(words):.0f} words, the maximum {words.max():,}."


def _score_box(measured: Measured | Share, name: str) -> str:
    """Return a score in large digits, with its 95 % interval."""
    low, high = (
        (measured.low, measured.high)
        if isinstance(measured, Share)
        else (max(0.0, measured.value - measured.margin), min(1.0, measured.value + measured.margin))
    )
    interval = f"95 % interval {100 * low:.1f} to {100 * high:.1f}"
    return f"<div><span class='score'>{100 * measured.value:.1f} %</span> {name} ({interval})</div>"


def _class_table(
    names: Sequence[str],
    precision: NDArray[Any],
    recall: NDArray[Any],
    f1: NDArray[Any],
    counts: Mapping[str, NDArray[Any]],
) -> str:
    """Return a table with one row per class: counts, precision, recall, F1 and a bar for F1."""
    cells = [[f"<td class='number'>{n:,}</td>" for n in column.tolist()] for column in counts.values()]
    body = "".join(
        f"<tr><td>{escape(name)}</td>{''.join(own)}"
        f"<td class='number'>{p:.3f}</td><td class='number'>{r:.3f}</td><td class='number'>{f:.3f}</td>"
        f"<td class='wide'><span class='bar' style='width:{6 * f:.2f}rem'></span></td></tr>"
        for name, own, p, r, f in zip(names, zip(*cells, strict=True), precision, recall, f1, strict=True)
    )
    counted = "".join(f"<th>{name}</th>" for name in counts)
    head = f"<tr><th>class</th>{counted}<th>precision</th><th>recall</th><th>F1</th><th class='wide'></th></tr>"
    return f"<div class='scroll'><table>{head}{body}</table></div>"


def _reliability_plot(calibration: Calibration, of: str) -> str:
    """Return a plot of accuracy over confidence, with one point per bin; `of` names what is counted."""
    points = "".join(
        f"<circle cx='{10 + 200 * x:.1f}' cy='{210 - 200 * y:.1f}' r='{3 + 14 * s**0.5:.1f}' fill='rgb(var(--mark))' "
        f"fill-opacity='.7'><title>{100 * x:.0f} % confident, {100 * y:.0f} % right, {100 * s:.0f} % {of}"
        "</title></circle>"
        for x, y, s in zip(*calibration.reliability(), strict=True)
    )
    return (
        "<svg width='240' height='240' viewBox='0 0 240 240' role='img' aria-label='reliability'>"
        "<rect x='10' y='10' width='200' height='200' fill='none' stroke='var(--line)'/>"
        "<line x1='10' y1='210' x2='210' y2='10' stroke='var(--faint)' stroke-dasharray='4 4'/>"
        f"{points}<text x='110' y='234' text-anchor='middle' font-size='12' fill='var(--faint)'>confidence</text>"
        "<text x='226' y='110' text-anchor='middle' font-size='12' fill='var(--faint)' transform='rotate(90 226 110)'>"
        "accuracy</text></svg>"
    )


def _mistakes_section(parts: Sequence[str], legend: str) -> str:
    """Return the section of explained mistakes; `legend` explains the colors."""
    if not parts:
        return "<h2>Mistakes</h2><p>None.</p>"
    return (
        f"<h2>The most confident mistakes, and why</h2><p class='quiet'>{legend} Some of these labels may be wrong.</p>"
        f"{''.join(parts)}"
    )
