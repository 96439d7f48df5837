"""A model on labelled documents, as one page for a colleague: scores, confusions, what speaks for each class, mistakes.

Self-contained HTML without a script: it can be mailed, and asks nobody for anything.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

from mpad.estimator.intervals import wilson
from mpad.evaluate.calibration import Calibration
from mpad.evaluate.label_scores import score_labels
from mpad.evaluate.report_many import many_label_parts
from mpad.evaluate.report_parts import (
    about_lengths,
    about_model,
    class_table,
    mistakes_section,
    reliability,
    score_box,
)
from mpad.explain import DEFAULT, explain
from mpad.explain.corpus import ClassView, corpus_view
from mpad.explain.drift import Drift, drift
from mpad.explain.page import to_fragment
from mpad.pipeline.document_model import DocumentModel

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
_MOST_EXPLAINED = 200  # documents that the words of each class are taken from
_MOST_CONFUSED = 30  # classes in a matrix that one can look at


@dataclass(frozen=True)
class Judged:
    """What a model said of labelled documents."""

    texts: Sequence[str]
    truth: Sequence[str]
    predicted: list[str]
    probabilities: NDArray[np.float64]  # (documents, classes)
    classes: list[str]
    ids: Sequence[str] | None = None  # as the file names its documents

    def named(self, k: int) -> str:
        """Return the id of a document, or its number."""
        return f"document {k + 1}" if self.ids is None else f"document {self.ids[k]}"

    @property
    def right(self) -> NDArray[np.bool_]:
        """Whether each was right."""
        return np.asarray(np.array(self.truth) == np.array(self.predicted))


def make_report(
    model: DocumentModel,
    texts: Sequence[str],
    truth: Sequence[Any],
    card: dict[str, Any],
    name: str,
    against: Sequence[str] | None = None,
    mistakes: int = 8,
    done: Callable[[], None] = lambda: None,
    ids: Sequence[str] | None = None,
) -> str:
    """Write the page; `against` are documents to compare these with, such as those that the model learnt from."""
    probabilities = model.probabilities(list(texts))
    sample = list(texts[:: max(1, len(texts) // _MOST_EXPLAINED)])[:_MOST_EXPLAINED]
    telling = _telling(corpus_view(model, sample, DEFAULT, 8, done), len(sample))
    about = f"<h1>{escape(name)}</h1>{about_model(card)}"
    if model.labels.multilabel:
        scores = score_labels(model.labels, truth, model.labels.apply_thresholds(probabilities))
        parts = [about, *many_label_parts(model, texts, scores, probabilities, telling, mistakes)]
    else:
        classes = [str(label) for label in model.labels.classes]
        predicted = [classes[column] for column in probabilities.argmax(1)]
        judged = Judged(texts, [str(label) for label in truth], predicted, probabilities, classes, ids)
        parts = [about, _head(judged), _by_class(judged), _confusions(judged), _sureness(judged), telling]
        parts.append(_mistakes(model, judged, mistakes) if mistakes else "")
    parts.append("" if against is None else _drifted(drift(model, against, texts)))
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(name)}: report</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{_STYLE}</style></head><body>{''.join(parts)}</body></html>\n"
    )


def _head(judged: Judged) -> str:
    n = len(judged.texts)
    most, count = Counter(judged.truth).most_common(1)[0]
    return (
        f"<div class='row'>{score_box(wilson(int(judged.right.sum()), n), 'right')}</div>"
        f"<p class='quiet'>{n:,} documents. Saying '{escape(most)}' every time would be right for "
        f"{100 * count / n:.1f} %. {about_lengths(judged.texts)}</p>"
    )


def _by_class(judged: Judged) -> str:
    classes = sorted({*judged.classes, *judged.truth})
    precision, recall, f1, support = precision_recall_fscore_support(
        judged.truth, judged.predicted, labels=classes, zero_division=0.0
    )
    return f"<h2>Each class</h2>{class_table(classes, precision, recall, f1, {'documents': support})}"


def _confusions(judged: Judged) -> str:
    counts = Counter([*judged.truth, *judged.predicted])
    classes = sorted(name for name, _ in counts.most_common(_MOST_CONFUSED))
    matrix = confusion_matrix(judged.truth, judged.predicted, labels=classes)
    diagonal = np.eye(len(classes), dtype=bool)
    most = {True: max(int(matrix[diagonal].max(initial=0)), 1), False: max(int(matrix[~diagonal].max(initial=0)), 1)}

    def shade(n: int, right: bool) -> str:
        """Mistakes have a scale of their own: they are few, and what one looks for."""
        strength = 0.12 + 0.5 * n / most[right] if n else 0.0
        return f"background: rgba(var(--{'mark' if right else 'miss'}), {strength:.2f})"

    rows = []
    for k, name in enumerate(classes):
        cells = "".join(f"<td style='{shade(n, k == j)}'>{n or ''}</td>" for j, n in enumerate(matrix[k].tolist()))
        rows.append(f"<tr><th>{escape(name)}</th>{cells}</tr>")
    head = "".join(f"<th><span>{escape(name)}</span></th>" for name in classes)
    note = "" if len(counts) <= _MOST_CONFUSED else f" The {_MOST_CONFUSED} most frequent classes."
    return (
        f"<h2>Confusions</h2><p class='quiet'>Rows: the true class; columns: what the model said.{note}</p>"
        f"<div class='scroll'><table class='confusion'><tr><th></th>{head}</tr>{''.join(rows)}</table></div>"
    )


def _sureness(judged: Judged) -> str:
    calibration = Calibration(judged.probabilities.max(1), judged.right)
    shares, surest = calibration.coverage()
    rows = "".join(
        f"<tr><td class='number'>{100 * shares[k]:.0f} %</td><td class='number'>{100 * surest[k]:.1f} %</td></tr>"
        for k in (1, 4, 9, 14, 19)
    )
    return (
        "<h2>How far its probabilities hold</h2>"
        f"<p class='quiet'>Expected calibration error {calibration.error:.3f}: the mean distance between how sure it "
        "was and how often it was right. A point on the line means what it says.</p><div class='columns'>"
        f"{reliability(calibration, 'of the documents')}"
        f"<table><tr><th>surest answers</th><th>right</th></tr>{rows}</table></div>"
    )


def _telling(views: Sequence[ClassView], n: int) -> str:
    rows = "".join(
        f"<tr><td><b>{escape(str(view.label))}</b></td>"
        f"<td>{escape(', '.join(one.text for one in view.words) or '—')}</td>"
        f"<td>{escape(', '.join(one.text for one in view.edges[:5]) or '—')}</td></tr>"
        for view in views
        if view.documents
    )
    return (
        "<h2>What speaks for each class</h2>"
        f"<p class='quiet'>Words and pairs of words that weigh most over {n:,} of these documents.</p>"
        f"<div class='scroll'><table><tr><th>class</th><th>words</th><th>pairs</th></tr>{rows}</table></div>"
    )


def _mistakes(model: DocumentModel, judged: Judged, most: int) -> str:
    sure = judged.probabilities.max(1)
    wrong = sorted(np.flatnonzero(~judged.right).tolist(), key=lambda k: -sure[k])[:most]
    parts = [
        f"<div class='mistake'><p>{escape(judged.named(k))}: <b>{escape(judged.truth[k])}</b>, predicted as "
        f"<b>{escape(judged.predicted[k])}</b> with a probability of {100 * sure[k]:.0f} %</p>"
        f"{to_fragment(explain(model, judged.texts[k]), graph=False, heading=False)}</div>"
        for k in wrong
    ]
    return mistakes_section(parts, "Blue words support the prediction, orange ones oppose it.")


def _drifted(measured: Sequence[Drift]) -> str:
    rows = "".join(
        f"<tr><td>{escape(one.what)}</td><td class='number'>{one.first:.3f}</td>"
        f"<td class='number'>{one.second:.3f}</td>"
        f"<td class='number'>{one.difference:+.3f} ± {one.error:.3f}</td><td>{'differs' if one.clear else ''}</td></tr>"
        for one in measured
    )
    head = "<tr><th></th><th>then</th><th>now</th><th>difference (95 %)</th><th></th></tr>"
    return f"<h2>Drift</h2><div class='scroll'><table>{head}{rows}</table></div>"
