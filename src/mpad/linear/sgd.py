"""The linear part of a model, fitted on documents that come in windows: the same hinge loss, by averaged SGD.

Pairs of words and the rarity of words are learnt from a sample of the corpus; the weights from all of it, in one
pass where it is large.
Lanes of several processes are fitted apart and averaged, which loses next to nothing where each has many documents.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.linear_model import SGDClassifier

from mpad.graph.packed import PackedGraphs
from mpad.linear.features import Doubles, Features, Known
from mpad.linear.fit import Examples, Stack, held_out_stack, make_potentials
from mpad.linear.mixture import HeldOutFit, join_parts
from mpad.linear.potentials import both_classes, weigh_parts

if TYPE_CHECKING:
    from mpad.training.processes import Processes
    from mpad.training.stream_windows import Window

MOST_PAIRS = 300_000
_SMALLEST_ALPHA = 1e-6  # of the penalty: 1 / documents down to this, as a linear SVM of C = 1 has


class StreamedSVM:
    """A linear SVM for each class that has not seen the held-out documents: weight (rows, features), intercept."""

    def __init__(self, known: Known, n_classes: int, multilabel: bool, documents: int, seed: int) -> None:
        self._known, self._n_classes, self._multilabel = known, n_classes, multilabel
        self._binary = n_classes == 2 and not multilabel
        alpha = max(_SMALLEST_ALPHA, 1 / max(documents, 1))
        rows = n_classes if multilabel else 1
        self._models = [SGDClassifier(loss="hinge", alpha=alpha, average=True, random_state=seed) for _ in range(rows)]

    def learn_from(self, windows: Iterable["Window"]) -> None:
        """Pass over documents."""
        for window in windows:
            weighed = weigh_parts(window.graphs, self._known.keys, self._known.idf, self._known.idf_new)
            x = self._known.matrix(weighed, len(window.graphs))
            rows = np.concatenate(window.batches)
            x, targets = x[rows], window.targets[rows]
            if self._multilabel:
                for label, model in enumerate(self._models):
                    model.partial_fit(x, targets[:, label] > 0.5, classes=[False, True])
            else:
                self._models[0].partial_fit(x, targets, classes=np.arange(self._n_classes))

    def average(self, lanes: int, processes: "Processes", others: Sequence["StreamedSVM"]) -> tuple[Doubles, Doubles]:
        """Weights and intercepts, the mean over the lanes of all processes: (rows, features), (rows,)."""
        both = [np.concatenate([own.weight, own.intercept[:, None]], axis=1) for own in (self, *others)]
        total = processes.sum(torch.from_numpy(np.sum(both, axis=0) / lanes)).numpy()
        return total[:, :-1], total[:, -1]

    @property
    def weight(self) -> Doubles:
        """One row a class; of two classes, one row."""
        return np.concatenate([model.coef_ for model in self._models])

    @property
    def intercept(self) -> Doubles:
        """One number a row."""
        return np.concatenate([model.intercept_ for model in self._models])


def join_streamed(
    held: PackedGraphs,
    targets: NDArray[np.int64],
    n_classes: int,
    n_words: int,
    vectors: NDArray[np.floating],
    known: Known,
    linear: tuple[Doubles, Doubles],
    network_logits: NDArray[np.floating],
) -> HeldOutFit:
    """Fit on held-out documents what SVM, regression and network count; the regression is fitted there, too."""
    everything = np.arange(len(held))
    features = Features(held, everything, n_words, vectors, known=known)
    weights = np.ones(len(targets), np.float32)
    examples = Examples(features.x, features.mean, targets, weights, n_classes)
    weight, intercept = linear
    scores: Any = both_classes(features.x @ weight.T + intercept, n_classes)
    joined = join_parts([scores, held_out_stack(examples, scores, everything), network_logits], targets)
    potentials = make_potentials(features, Stack(examples, scores, everything), joined.counts, weight, intercept)
    return HeldOutFit(joined.accuracies, joined.answers_by, potentials, joined.logits)
