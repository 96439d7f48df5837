"""The linear part of a model, fitted on streamed documents: the same hinge loss, by averaged SGD.

Word pairs and IDF are learned from a sample of the corpus, the weights from all of it, in one pass if it is large.
Lanes of several processes are fitted separately and averaged, which costs almost nothing if each has many documents.
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
_SMALLEST_ALPHA = 1e-6  # lower bound of the penalty 1 / documents, which matches a linear SVM with C = 1


class StreamedSVM:
    """A linear SVM per class, fitted window by window without the held-out documents."""

    def __init__(self, known: Known, n_classes: int, multilabel: bool, documents: int, seed: int) -> None:
        self._known, self._n_classes, self._multilabel = known, n_classes, multilabel
        self._binary = n_classes == 2 and not multilabel
        alpha = max(_SMALLEST_ALPHA, 1 / max(documents, 1))
        rows = n_classes if multilabel else 1
        self._models = [SGDClassifier(loss="hinge", alpha=alpha, average=True, random_state=seed) for _ in range(rows)]

    def learn_from(self, windows: Iterable["Window"]) -> None:
        """Fit on the documents of these windows."""
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
        """Average weights and intercepts over the lanes of all processes: (rows, features), (rows,)."""
        both = [np.concatenate([own.weight, own.intercept[:, None]], axis=1) for own in (self, *others)]
        total = processes.sum(torch.from_numpy(np.sum(both, axis=0) / lanes)).numpy()
        return total[:, :-1], total[:, -1]

    @property
    def weight(self) -> Doubles:
        """Weights, one row per class; one row for two classes: (rows, features)."""
        return np.concatenate([model.coef_ for model in self._models])

    @property
    def intercept(self) -> Doubles:
        """Intercepts: (rows,)."""
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
    """Fit the regression and the weights of SVM, regression and network on held-out documents."""
    everything = np.arange(len(held))
    features = Features(held, everything, n_words, vectors, known=known)
    weights = np.ones(len(targets), np.float32)
    examples = Examples(features.x, features.mean, targets, weights, n_classes)
    weight, intercept = linear
    scores: Any = both_classes(features.x @ weight.T + intercept, n_classes)
    joined = join_parts([scores, held_out_stack(examples, scores, everything), network_logits], targets)
    potentials = make_potentials(features, Stack(examples, scores, everything), joined.part_weights, weight, intercept)
    return HeldOutFit(joined.accuracies, joined.answers_by, potentials, joined.logits)
