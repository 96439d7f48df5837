"""Pieces of HTML that a report has, whether a document has one label or many."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpad.estimator.intervals import Share
from mpad.evaluate.calibration import Calibration
from mpad.evaluate.label_scores import Measured


def about_model(card: Mapping[str, Any]) -> str:
    """When the model was trained, on how much, and how well it did then."""
    held, svm = card.get("validation_accuracy"), card.get("validation_accuracy_tfidf_svm")
    facts = [
        f"trained {str(card['trained'])[:10]} on {card['documents']:,} documents" if "trained" in card else "",
        f"accuracy on held-out documents then: {100 * held:.1f} %" if isinstance(held, float) else "",
        f"TF-IDF + linear SVM on the same: {100 * svm:.1f} %" if isinstance(svm, float) else "",
    ]
    return f"<p class='quiet'>{escape('; '.join(fact for fact in facts if fact))}</p>"


def about_lengths(texts: Sequence[str]) -> str:
    """How long documents are, as a sentence."""
    words = np.array([len(text.split()) for text in texts])
    return f"Documents have {np.median(words):.0f} words in the middle, {words.max():,} at most."


def score_box(measured: Measured | Share, what: str) -> str:
    """Return a share in large figures, with its 95 % interval."""
    low, high = (
        (measured.low, measured.high)
        if isinstance(measured, Share)
        else (max(0.0, measured.value - measured.margin), min(1.0, measured.value + measured.margin))
    )
    interval = f"95 % interval {100 * low:.1f} to {100 * high:.1f}"
    return f"<div><span class='score'>{100 * measured.value:.1f} %</span> {what} ({interval})</div>"


def class_table(
    names: Sequence[str],
    precision: NDArray[Any],
    recall: NDArray[Any],
    f1: NDArray[Any],
    counts: Mapping[str, NDArray[Any]],
) -> str:
    """A row a class: counts by their name, precision, recall, F1 and a bar as long as it."""
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


def reliability(calibration: Calibration, of: str) -> str:
    """How sure against how often right, as a drawing; a point for each bin, as large as its share `of` all."""
    points = "".join(
        f"<circle cx='{10 + 200 * x:.1f}' cy='{210 - 200 * y:.1f}' r='{3 + 14 * s**0.5:.1f}' fill='rgb(var(--mark))' "
        f"fill-opacity='.7'><title>{100 * x:.0f} % sure, {100 * y:.0f} % right, {100 * s:.0f} % {of}"
        "</title></circle>"
        for x, y, s in zip(*calibration.reliability(), strict=True)
    )
    return (
        "<svg width='240' height='240' viewBox='0 0 240 240' role='img' aria-label='reliability'>"
        "<rect x='10' y='10' width='200' height='200' fill='none' stroke='var(--line)'/>"
        "<line x1='10' y1='210' x2='210' y2='10' stroke='var(--faint)' stroke-dasharray='4 4'/>"
        f"{points}<text x='110' y='234' text-anchor='middle' font-size='12' fill='var(--faint)'>how sure</text>"
        "<text x='226' y='110' text-anchor='middle' font-size='12' fill='var(--faint)' transform='rotate(90 226 110)'>"
        "share right</text></svg>"
    )


def mistakes_section(parts: Sequence[str], said: str) -> str:
    """Mistakes, each explained; `said` tells what the colours mean."""
    if not parts:
        return "<h2>Mistakes</h2><p>None.</p>"
    return (
        f"<h2>The most confident mistakes, and why</h2><p class='quiet'>{said} Some of these labels may be wrong.</p>"
        f"{''.join(parts)}"
    )
