"""The linear part of a model, fitted on streamed documents: the same hinge loss, by averaged SGD.

Word pairs and IDF are learned from a sample of the corpus, the weights from all of it, in one pass if it is large.
Lanes of several processes are fitted separately and averaged, which costs almost nothing if each has many documents.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.linear_model import SGDClassifier

from mpad.linear.features import Doubles, Features, Known
from mpad.linear.fit import SVM, Examples, HeldOutFit, LinearData, Stack, held_out_stack, join_parts, make_potentials
from mpad.linear.potentials import weigh_parts

if TYPE_CHECKING:
    from mpad.training.processes import Processes
    from mpad.training.stream import Window

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

    def average(self, lanes: int, processes: "Processes", others: Sequence["StreamedSVM"]) -> SVM:
        """Average weights and intercepts over the lanes of all processes."""
        total = processes.sum(torch.from_numpy(np.sum([own._rows for own in (self, *others)], axis=0) / lanes)).numpy()
        return SVM(total[:, :-1], total[:, -1], self._n_classes)

    @property
    def _rows(self) -> Doubles:
        """Weights and the intercept of each class; one row for two classes: (rows, features + 1)."""
        return np.concatenate([np.append(model.coef_, model.intercept_[:, None], axis=1) for model in self._models])


def join_streamed(held: LinearData, known: Known, svm: SVM, network_logits: NDArray[np.floating]) -> HeldOutFit:
    """Fit the regression and the weights of SVM, regression and network on held-out documents."""
    everything = np.arange(len(held.graphs))
    features = Features(held.graphs, everything, held.n_words, held.vectors, known=known)
    examples = Examples(features, held.targets, held.weights, held.n_classes)
    scores = svm.scores(features.x)
    experts = [scores, held_out_stack(examples, scores, everything), network_logits]
    joined = join_parts(experts, held.targets, held.weights)
    assert joined.part_weights is not None
    stack = Stack(examples, scores, everything)
    return replace(joined, potentials=make_potentials(examples, svm, stack, joined.part_weights, joined.bias))
