"""Choose the documents to label next: typical ones at first, then uncertain ones that differ from each other."""

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans

Rows = NDArray[np.int64]
Vectors = NDArray[np.float32]
_MOST_UNCERTAIN = 10  # candidates per document to choose
_MOST_GROUPED = 5_000  # documents that are grouped when nothing is known yet


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
        Those of the model so far.

    Returns
    -------
    list of int

    Notes
    -----
    Without a model, documents are grouped by k-means into as many groups as there are documents with labels and to
    choose; the most central documents of the largest groups without labels are chosen (Hacohen et al., 2022). With a
    model, the most uncertain documents (smallest lead of the first class over the second) are grouped, and the most
    central one of each group is chosen: uncertain documents that differ from each other.

    """
    if len(free) <= n:
        return [int(row) for row in free]
    if probabilities is None:
        return _typical(vectors, labeled, free, n)
    ordered = np.sort(probabilities[free], axis=1)
    lead = ordered[:, -1] - ordered[:, -2] if ordered.shape[1] > 1 else ordered[:, -1]
    candidates = free[np.argsort(lead, kind="stable")[: n * _MOST_UNCERTAIN]]
    groups = _group(vectors[candidates], n)
    places = [_most_central(vectors[candidates], np.flatnonzero(groups == group)) for group in np.unique(groups)]
    return [int(candidates[place]) for place in sorted(places)]  # the most uncertain first


def _typical(vectors: Vectors, labeled: Rows, free: Rows, n: int) -> list[int]:
    some = free if len(free) <= _MOST_GROUPED else np.random.default_rng(0).permutation(free)[:_MOST_GROUPED]
    rows = np.concatenate([labeled, np.sort(some)])
    groups = _group(vectors[rows], min(len(labeled) + n, len(rows)))
    known = set(groups[: len(labeled)].tolist())
    sizes = np.bincount(groups)
    order = [group for group in np.argsort(-sizes, kind="stable").tolist() if group not in known and sizes[group]]
    return [int(rows[_most_central(vectors[rows], np.flatnonzero(groups == group))]) for group in order[:n]]


def _group(vectors: Vectors, k: int) -> Rows:
    """Return the group of each vector; fewer than `k` groups if fewer vectors differ."""
    k = min(k, len(np.unique(vectors, axis=0)))
    return np.asarray(KMeans(k, n_init=1, random_state=0).fit_predict(vectors), np.int64)


def _most_central(vectors: Vectors, members: Rows) -> int:
    """Return the member of a group that is nearest to its mean."""
    own = vectors[members]
    return int(members[(own @ own.mean(0)).argmax()])
