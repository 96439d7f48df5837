"""A labeling session: which document is next, what the model suggests, and what was learned so far.

A model is fitted in the background after every batch of labels; the next documents are chosen by it. Nothing waits for
it: labels are stored at once, and until a fit ends the documents of the earlier choice are shown.
"""

import copy
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import Condition, Thread
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from mpad.data.equal_texts import text_groups
from mpad.data.inputs import as_texts
from mpad.encoder.encoder import AUTO, load_encoder
from mpad.errors import InputError
from mpad.estimator.classifier import MPADClassifier
from mpad.evaluate.label_errors import default_classifier
from mpad.evaluate.neighbors import text_vectors
from mpad.explain import Explanation
from mpad.labeling.journal import Journal
from mpad.labeling.select import choose_next

BATCH = 10  # labels between two fits
_FEWEST = 4  # labels of the first fit
_SHARPNESS = 20.0  # of suggestions by the names of classes: probabilities are softmax(20 · cosine)
_HELD = 120.0  # seconds for which a document that one browser shows is not shown in another
_FLAT, _WINDOW = 0.01, 50  # the curve is flat if accuracy rose by less than a point over the last fifty labels
_MOST_POOL = 20_000  # documents that are looked at


@dataclass(frozen=True)
class Point:
    """Accuracy after a number of labels, by cross-validation on the labeled documents."""

    labels: int
    accuracy: float
    seconds: float  # of the fit


@dataclass(frozen=True)
class Document:
    """A document to label, with a suggestion if there is a model."""

    row: int
    text: str
    suggestion: str | None
    probability: float | None
    explanation: Explanation | None


class LabelingSession:
    """Texts to label, their labels so far, and a model that learns from them."""

    def __init__(
        self,
        texts: Sequence[str],
        journal: Journal,
        classes: Sequence[str] = (),
        *,
        ids: Sequence[str] | None = None,
        descriptions: Mapping[str, str] | None = None,
        model: MPADClassifier | None = None,
    ) -> None:
        texts = as_texts(texts)
        first = np.unique(text_groups(texts), return_index=True)[1] if texts else np.zeros(0, np.int64)
        rows = [row for row in np.sort(first).tolist() if texts[row].strip()][:_MOST_POOL]
        if not rows:
            raise InputError("there are no documents to label")
        self.texts = [texts[row] for row in rows]
        self._ids = [str(row + 1) if ids is None else ids[row] for row in rows]
        self._journal, self._start = journal, model
        self._place = {text: row for row, text in enumerate(self.texts)}
        known = [] if model is None else [str(name) for name in model.classes_.tolist()]
        self.classes = list(dict.fromkeys([*known, *classes, *journal.labels.values()]))
        self.vectors, self._template = text_vectors(self.texts), default_classifier(self.texts)
        self._descriptions = dict(descriptions or {})
        self.model: MPADClassifier | None = model
        self._probabilities: NDArray[np.float64] | None = None
        self._columns: list[str] = []
        self.curve: list[Point] = []
        self.problem = ""  # why the last fit failed
        self._skipped: set[int] = set()
        self._shown: dict[int, float] = {}
        self._history: list[int] = []
        self._queue: list[int] = []
        self._fitted_on, self._fitting, self._closed = -1, False, False
        self._changed = Condition()
        if model is not None:
            self._set_predictions(known, model.predict_proba(self.texts))
        elif len(classes) > 1 and self._template.max_epochs == 0:  # the encoder knows these texts
            self._set_predictions(list(classes), self._by_names(list(classes)))
        self._thread = Thread(target=self._learn, name="label-fit", daemon=True)
        self._thread.start()

    # ── What a browser asks for ──

    @property
    def labels(self) -> dict[int, str]:
        """Labels by row."""
        stored = self._journal.labels
        return {self._place[text]: label for text, label in stored.items() if text in self._place}

    def next_document(self) -> Document | None:
        """Return the document to label next; None if all have labels or were skipped."""
        with self._changed:
            now, labels = time.monotonic(), self.labels
            free = [row for row in self._queue if row not in labels and row not in self._skipped]
            if not free:
                free = self._queue = self._choose(labels)
            if not free:
                return None
            unseen = [row for row in free if now - self._shown.get(row, -_HELD) >= _HELD]
            row = (unseen or free)[0]
            self._shown[row] = now
        return self.document(row)

    def document(self, row: int) -> Document:
        """Return a document with the suggestion of the present model, and why."""
        self._check_row(row)
        with self._changed:
            probabilities, columns, model = self._probabilities, self._columns, self.model
        if probabilities is None:
            return Document(row, self.texts[row], None, None, None)
        best = int(probabilities[row].argmax())
        explanation = None
        if model is not None and model.model_.kind == "mpad":
            explanation = model.explain(self.texts[row], model.classes_.tolist()[best])
        return Document(row, self.texts[row], columns[best], float(probabilities[row, best]), explanation)

    def label(self, row: int, label: str) -> None:
        """Store the label of a document."""
        self._check_row(row)
        label = label.strip()
        if not label:
            raise InputError("a label must not be empty")
        with self._changed:
            self._journal.set(self.texts[row], label, self._ids[row])
            if label not in self.classes:
                self.classes.append(label)
            self._history = [*(other for other in self._history if other != row), row]
            self._shown.pop(row, None)
            self._changed.notify_all()

    def skip(self, row: int) -> None:
        """Leave a document out."""
        self._check_row(row)
        with self._changed:
            self._skipped.add(row)
            self._shown.pop(row, None)

    def undo(self) -> int | None:
        """Take back the last label, and return its document; None if there is none."""
        with self._changed:
            if not self._history:
                return None
            row = self._history.pop()
            self._journal.set(self.texts[row], None, self._ids[row])
            self._queue = [row, *self._queue]
            return row

    def state(self) -> dict[str, Any]:
        """Return progress as JSON values."""
        with self._changed:
            labels = list(self.labels.values())
            return {
                "classes": self.classes,
                "counts": {name: labels.count(name) for name in self.classes},
                "labeled": len(labels),
                "documents": len(self.texts),
                "fitting": self._fitting,
                "problem": self.problem,
                "curve": [[point.labels, point.accuracy] for point in self.curve],
                "flat": is_flat(self.curve),
                "can_undo": bool(self._history),
            }

    def wait(self, seconds: float = 600.0) -> None:
        """Wait until the model has learned from all batches that are complete."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or not (self._fitting or self._is_due()), seconds)

    def close(self) -> None:
        """Stop learning, after a fit that has begun; the labels are on disk already."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join()
        self._journal.close()

    # ── Learning ──

    def _is_due(self) -> bool:
        """Return whether there are enough new labels for a fit."""
        labels = self.labels
        if len(labels) < _FEWEST or len(set(labels.values())) < 2:
            return False
        return self._fitted_on < 0 or abs(len(labels) - self._fitted_on) >= BATCH

    def _learn(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._is_due())
                if self._closed:
                    return
                labels, self._fitting = self.labels, True
            start = time.perf_counter()
            try:
                model = self._fit([self.texts[row] for row in labels], list(labels.values()))
                probabilities, problem = model.predict_proba(self.texts), ""
            except Exception as error:  # whatever it is, labeling goes on, and the page shows it
                model, problem = None, f"{type(error).__name__}: {error}"
            with self._changed:
                self._fitted_on, self._fitting, self.problem = len(labels), False, problem
                if model is not None:
                    self.model = model
                    self._set_predictions([str(name) for name in model.classes_.tolist()], probabilities)
                    if model.held_out_ is not None:
                        accuracy = model.held_out_.accuracy.value
                        self.curve.append(Point(len(labels), accuracy, time.perf_counter() - start))
                    self._queue = self._choose(self.labels)
                self._changed.notify_all()

    def _fit(self, texts: list[str], labels: list[str]) -> MPADClassifier:
        """Return a model of these labels: fitted on them, or the start model adjusted to them if it knows them all."""
        if self._start is not None and set(labels) <= {str(name) for name in self._start.classes_.tolist()}:
            adjusted = copy.deepcopy(self._start)
            known = {str(name): name for name in adjusted.classes_.tolist()}
            return adjusted.partial_fit(texts, [known[label] for label in labels])
        named = {name: text for name, text in self._descriptions.items() if name in set(labels)}
        fresh: MPADClassifier = clone(self._template)
        return fresh.fit(texts, labels, class_names=named or None)

    def _set_predictions(self, columns: list[str], probabilities: NDArray[np.float64]) -> None:
        self._columns, self._probabilities = columns, probabilities

    def _by_names(self, classes: list[str]) -> NDArray[np.float64]:
        """Return probabilities by the similarity of documents and the names or descriptions of classes."""
        names = load_encoder(AUTO).encode([self._descriptions.get(name, name) for name in classes])
        scores = np.exp(_SHARPNESS * (self.vectors @ names.T).astype(np.float64))
        return np.asarray(scores / scores.sum(1, keepdims=True))

    def _choose(self, labels: Mapping[int, str]) -> list[int]:
        done = np.array(sorted(labels), np.int64)
        free = np.setdiff1d(np.arange(len(self.texts)), np.array(sorted({*labels, *self._skipped}), np.int64))
        probabilities = self._probabilities if self.model is not None else None  # names alone mislead the choice
        return choose_next(self.vectors, done, free, BATCH, probabilities)

    def _check_row(self, row: int) -> None:
        if not 0 <= row < len(self.texts):
            raise InputError(f"there is no document {row}; there are {len(self.texts):,}, numbered from 0")


def is_flat(curve: Sequence[Point]) -> bool:
    """Return whether the accuracy has hardly risen over the last labels."""
    if not curve:
        return False
    before = [point.accuracy for point in curve if point.labels <= curve[-1].labels - _WINDOW]
    return bool(before) and curve[-1].accuracy - before[-1] < _FLAT
