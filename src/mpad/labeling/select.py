"""Choose the documents to label next: uncertain ones that differ from each other and from those with labels."""

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]
Vectors = NDArray[np.float32]
_MOST_UNCERTAIN = 20  # candidates per document to choose


def choose_next(
    vectors: Vectors, labeled: Rows, free: Rows, n: int, probabilities: NDArray[np.float64] | None = None
) -> list[int]:
    """Return the rows of the documents to label next, the most useful first.

    Parameters
    ----------
    vectors : ndarray of shape (n_documents, width)
        A vector of length one per document.
    labeled, free : ndarray of int
        Rows of the documents with labels, and of those that may be chosen.
    n : int
        Number of documents to choose.
    probabilities : ndarray of shape (n_documents, n_classes), optional
        Those of the model so far. Without them documents are chosen by their differences only.

    Returns
    -------
    list of int

    Notes
    -----
    A document's uncertainty is one minus the lead of its most probable class over the second. Among the most uncertain
    documents, each next one has the largest product of its uncertainty and its distance (one minus the cosine) from the
    nearest document that has a label or has just been chosen.

    """
    if not len(free):
        return []
    if probabilities is None:
        uncertainty = np.ones(len(free))
    else:
        ordered = np.sort(probabilities[free], axis=1)
        uncertainty = 1 - (ordered[:, -1] - ordered[:, -2] if ordered.shape[1] > 1 else ordered[:, -1])
        most = np.argsort(-uncertainty, kind="stable")[: n * _MOST_UNCERTAIN]
        free, uncertainty = free[most], uncertainty[most]
    own = vectors[free]
    # Far from all others at first, where nothing has a label: then the first document is the most typical one.
    nearest = (own @ vectors[labeled].T).max(1) if len(labeled) else np.full(len(free), -1.0)
    chosen: list[int] = []
    score = uncertainty * (1 - nearest)
    if not len(labeled) and probabilities is None:
        score = own @ own.mean(0)
    taken = np.zeros(len(free), bool)
    while len(chosen) < min(n, len(free)):
        best = int(np.where(taken, -np.inf, score).argmax())
        taken[best] = True
        chosen.append(int(free[best]))
        nearest = np.maximum(nearest, own @ own[best])
        score = uncertainty * (1 - nearest)
    return chosen
