"""Examine labeled documents: wrong labels, conflicting duplicates, outliers, weak slices, classes that may be one.

`mpad data check` is fast and needs no model. `mpad doctor` trains one, and looks at what the model says of the data.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from mpad.data.inputs import as_examples
from mpad.data.inspection import Finding, find_problems, language_of
from mpad.data.labels import learn_labels
from mpad.errors import InputError
from mpad.estimator.held_out_scores import Share, wilson
from mpad.evaluate.html import html_page, html_table, number_cell, text_cell
from mpad.evaluate.label_errors import LabelErrors, default_classifier, rank_label_errors
from mpad.evaluate.neighbors import Neighborhoods, near_duplicates, text_vectors
from mpad.evaluate.out_of_fold import FOLDS, OutOfFold, predict_out_of_fold
from mpad.evaluate.slices import Slice, automatic_columns, score_slices

_MERGED = 0.3  # share of the documents of two classes that are confused with the other one: they may be one class
_FEW_WORDS = 8  # shorter texts are too short to tell their language
_SHOWN = 50  # rows per table of the page


@dataclass(frozen=True)
class Confusion:
    """Two classes, and how many of their documents are predicted as the other one."""

    first: Any
    second: Any
    confused: int
    documents: int

    @property
    def share(self) -> float:
        """Share of the documents of both classes that are confused."""
        return self.confused / max(self.documents, 1)

    @property
    def may_be_one(self) -> bool:
        """True if so many documents are confused that the classes may be one."""
        return self.share >= _MERGED


@dataclass(frozen=True)
class Diagnosis:
    """Result of an examination. Rows are positions of documents, from 0."""

    findings: list[Finding]  # of the model-free check
    errors: LabelErrors
    conflicts: list[list[int]]  # near-duplicates with different labels
    outliers: list[int]  # documents unlike all others, the strangest first
    foreign: list[tuple[int, str]]  # documents in another language than most, and their language
    confusions: list[Confusion]  # most confused pairs of classes first
    slices: list[Slice]  # most mistakes above the average first

    @property
    def predictions(self) -> OutOfFold:
        """Out-of-fold predictions of all documents."""
        return self.errors.predictions

    @property
    def accuracy(self) -> Share:
        """Share of the documents whose label is predicted by a model that has not seen them."""
        right = self.predictions.right
        return wilson(int(right.sum()), len(right))

    @property
    def weak_slices(self) -> list[Slice]:
        """Slices whose accuracy is clearly below that of all documents."""
        return [one for one in self.slices if one.is_weak(self.accuracy.value)]

    def table(self) -> tuple[list[str], list[list[Any]]]:
        """Return column names and a row per kind of problem, with an example and what to do."""
        texts, merged = self.predictions.texts, [one for one in self.confusions if one.may_be_one]
        rows: list[list[Any]] = [[one.what, one.number, one.example, one.cure] for one in self.findings]

        def add(what: str, items: Sequence[Any], example: Callable[[Any], str], cure: str) -> None:
            rows.append([what, len(items), example(items[0]) if items else "", cure if items else ""])

        add(
            "labels that are probably wrong",
            self.errors.errors,
            lambda one: f"{one.label} → {one.suggested}: {_shorten(one.text)}",
            "review them (--corrections FILE), then mpad fit --add FILE",
        )
        add(
            "near-duplicates with different labels",
            self.conflicts,
            lambda rows: _shorten(texts[rows[0]]),
            "give them one label",
        )
        add("documents unlike all others", self.outliers, lambda row: _shorten(texts[row]), "look at them")
        add(
            "documents in another language",
            self.foreign,
            lambda one: f"{one[1]}: {_shorten(texts[one[0]])}",
            "translate or drop them",
        )
        add(
            "pairs of classes that may be one",
            merged,
            lambda one: f"{one.first} / {one.second}: {100 * one.share:.0f} % confused",
            "define them better, or join them",
        )
        add(
            "weak slices",
            self.weak_slices,
            lambda one: f"{one.column} = {one.value}: {100 * one.accuracy.value:.0f} % right",
            "label more of these documents",
        )
        return ["what", "how many", "for example", "what to do"], rows


def examine(
    texts: Sequence[str],
    labels: Any,
    *,
    columns: Mapping[str, Sequence[Any]] | None = None,
    classifier: Any = None,
    folds: int = FOLDS,
    done: Callable[[], None] = lambda: None,
) -> Diagnosis:
    """Examine labeled documents.

    Parameters
    ----------
    texts : sequence of str
        Documents.
    labels : array-like
        A label per document.
    columns : mapping of str to sequence, optional
        Further columns of the table, such as the source of each document: accuracy is measured for each value.
    classifier : estimator, optional
        Unfitted classifier, as in `find_label_errors`.
    folds : int, default=3
        Number of folds of the cross-validation.
    done : callable, optional
        Called after each fold, and at the end.

    Returns
    -------
    Diagnosis

    """
    texts, y = as_examples(texts, labels)
    known = learn_labels(y)
    if known.multilabel:
        raise InputError("the doctor examines data with one label per document, not multi-label data")
    findings = find_problems(texts, y.tolist())
    chosen = default_classifier(texts) if classifier is None else classifier
    predictions = predict_out_of_fold(chosen, texts, known, known.encode(y), folds, done)
    vectors = text_vectors(texts)
    neighborhoods = Neighborhoods.of(vectors)
    own = automatic_columns(texts, y.tolist(), vectors)
    duplicates = near_duplicates(texts, neighborhoods)
    diagnosis = Diagnosis(
        findings,
        rank_label_errors(predictions),
        [rows for rows in duplicates if len({predictions.targets[row] for row in rows}) > 1],
        neighborhoods.outliers().tolist(),
        _foreign(texts),
        find_confusions(predictions),
        score_slices(predictions.right, {**own, **(columns or {})}),
    )
    done()
    return diagnosis


def find_confusions(predictions: OutOfFold) -> list[Confusion]:
    """Return the pairs of classes that are confused, the largest share first."""
    n, names = len(predictions.labels), predictions.labels.classes.tolist()
    matrix = np.zeros((n, n), np.int64)
    np.add.at(matrix, (predictions.targets, predictions.predicted), 1)
    each = matrix.sum(1)
    pairs = [
        Confusion(names[a], names[b], int(matrix[a, b] + matrix[b, a]), int(each[a] + each[b]))
        for a in range(n)
        for b in range(a + 1, n)
    ]
    return sorted((pair for pair in pairs if pair.confused), key=lambda pair: -pair.share)


def _foreign(texts: Sequence[str]) -> list[tuple[int, str]]:
    """Return the documents in another language than most, as far as their words tell, and the language of each."""
    languages = ["unknown" if len(text.split()) < _FEW_WORDS else language_of(text) for text in texts]
    counts = Counter(language for language in languages if language != "unknown")
    if not counts:
        return []
    most = counts.most_common(1)[0][0]
    return [(row, language) for row, language in enumerate(languages) if language not in (most, "unknown")]


def _shorten(text: str, most: int = 80) -> str:
    shown = " ".join(text.split())
    return shown if len(shown) <= most else shown[: most - 1] + "…"


# ── The page ──


def to_html(diagnosis: Diagnosis, name: str, ids: Sequence[str] | None = None) -> str:
    """Return a diagnosis as a self-contained HTML page; `ids` are names of the documents, by default their numbers."""
    texts, targets = diagnosis.predictions.texts, diagnosis.predictions.targets
    classes = diagnosis.predictions.labels.classes.tolist()

    def document(row: int) -> list[str]:
        return [text_cell(ids[row] if ids else row + 1), text_cell(_shorten(texts[row], 300))]

    found = diagnosis.errors.errors
    errors = [
        [
            *document(one.row),
            text_cell(one.label),
            text_cell(one.suggested),
            number_cell(f"{one.suggested_probability:.2f}"),
            text_cell(", ".join(one.words)),
        ]
        for one in found[:_SHOWN]
    ]
    conflicts = [
        [number_cell(str(group + 1)), *document(row), text_cell(classes[targets[row]])]
        for group, rows in enumerate(diagnosis.conflicts)
        for row in rows
    ]
    confusions = [
        [
            text_cell(one.first),
            text_cell(one.second),
            number_cell(f"{one.confused:,} of {one.documents:,}"),
            number_cell(f"{100 * one.share:.0f} %"),
            text_cell("may be one class" if one.may_be_one else ""),
        ]
        for one in diagnosis.confusions
    ]
    overall = diagnosis.accuracy
    weak = [
        [
            text_cell(one.column),
            text_cell(one.value),
            number_cell(f"{one.documents:,}"),
            number_cell(f"{100 * one.accuracy.value:.1f} %"),
            number_cell(f"{100 * one.accuracy.low:.0f} to {100 * one.accuracy.high:.0f}"),
        ]
        for one in diagnosis.weak_slices
    ]
    parts = [
        f"<h1>{escape(name)}</h1>",
        f"<p class='quiet'>{len(texts):,} documents, {len(classes)} classes. Models that had not seen them predict the "
        f"label of {overall}.</p>",
        "<h2>Summary</h2>",
        html_table(
            ["", "how many", "for example", "what to do"],
            [
                [text_cell(what), number_cell(f"{number:,}"), text_cell(example), text_cell(cure)]
                for what, number, example, cure in diagnosis.table()[1]
            ],
        ),
        _section(
            "Labels that are probably wrong",
            "Most suspicious first. Words: those that most support the suggested label. A suspicious label may be "
            "right: review each.",
            ["document", "text", "label", "suggested", "probability", "words"],
            errors,
            len(found),
        ),
        _section(
            "Near-duplicates with different labels",
            "Documents of a group are equal or nearly so.",
            ["group", "document", "text", "label"],
            conflicts,
        ),
        _section(
            "Confused classes",
            "Share of the documents of both classes that are predicted as the other one.",
            ["class", "class", "confused", "share", ""],
            confusions,
        ),
        _section(
            "Weak slices",
            "Groups of documents whose accuracy is clearly below that of all. Topics are named by their words.",
            ["column", "value", "documents", "right", "95 % interval"],
            weak,
        ),
        _section(
            "Documents unlike all others",
            "Far from their nearest neighbors: often noise, another language, or the start of a new class.",
            ["document", "text", "label"],
            [[*document(row), text_cell(classes[targets[row]])] for row in diagnosis.outliers],
        ),
        _section(
            "Documents in another language",
            "By their function words.",
            ["document", "text", "language"],
            [[*document(row), text_cell(language)] for row, language in diagnosis.foreign],
        ),
    ]
    return html_page(f"{name}: data", parts)


def _section(
    title: str, about: str, heads: Sequence[str], rows: Sequence[Sequence[str]], total: int | None = None
) -> str:
    """Return a table of the first rows; `total` is the number of all, if `rows` are the first ones already."""
    if not rows:
        return f"<h2>{title}</h2><p>None.</p>"
    n = len(rows) if total is None else total
    more = f" The first {_SHOWN} of {n:,}." if n > _SHOWN else ""
    return f"<h2>{title}</h2><p class='quiet'>{about}{more}</p>{html_table(heads, rows[:_SHOWN])}"
