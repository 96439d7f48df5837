"""SPGK: shortest paths between words, shared by two documents (Nikolentzos et al., EMNLP 2017), and an SVM."""

from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.svm import SVC

from mpad.errors import InputError
from mpad.files.tensors import Arrays
from mpad.graph.build import GraphConfig, build_graphs
from mpad.paper.baselines.base import PlainClassifier
from mpad.storage.model_folder import VOCABULARY, WEIGHTS, ModelFiles, write_json
from mpad.text.vocabulary import Vocabulary, learn_vocabulary
from mpad.training.task import hold_out

_PATHS = ("data", "indices", "indptr")  # of the sparse matrix of training documents
_COSTS = (0.1, 1.0, 10.0, 100.0)


@dataclass(eq=False, repr=False)
class SPGK(PlainClassifier):
    """The kernel of shortest paths over undirected graphs of words, window 2.

    K(a, b) = Σ_{u,v} M_a[u, v] M_b[u, v] / (‖M_a‖ ‖M_b‖)    M[u, u] = 1, M[u, v] = 1 / length of the shortest path

    over pairs of words that both documents have, paths up to `depth` edges. That is the product of two sparse, unit
    vectors over word pairs, so the kernel matrix is one sparse product. `C` None: chosen on a tenth of the training
    documents. The matrix of n documents takes 8 n² bytes; more than `gigabytes` is refused before it is made.
    """

    kind = "spgk"

    depth: int = 2
    C: float | None = None
    gigabytes: float = 8.0
    seed: int = 0

    def _learn(self, texts: list[str], targets: NDArray[np.int64], n_classes: int) -> None:
        needed = 8 * len(texts) ** 2 / 1e9
        if needed > self.gigabytes:
            raise InputError(
                f"the kernel matrix of {len(texts):,} documents takes {needed:.2f} GB; "
                f"gigabytes={self.gigabytes} allows less"
            )
        self.vocabulary_, _ = learn_vocabulary(texts, self.tokenizer_)
        self.__dict__.pop("pairs_", None)  # of an earlier fit
        self.paths_ = self._paths(texts)
        kernel = np.asarray((self.paths_ @ self.paths_.T).todense())
        self.C_ = self.C or self._choose(kernel, targets)
        svm = SVC(C=self.C_, kernel="precomputed").fit(kernel, targets)
        self._keep(svm, len(targets), n_classes)

    def _keep(self, svm: SVC, n_documents: int, n_classes: int) -> None:
        """One against one, as weights of training documents: (pairs of classes, documents)."""
        weight = np.zeros((n_classes * (n_classes - 1) // 2, n_documents))
        starts = np.concatenate([[0], np.cumsum(svm.n_support_)])
        for pair, (i, j) in enumerate(combinations(range(n_classes), 2)):
            for own, row in ((i, j - 1), (j, i)):  # coefficients against the other class, in the row that has them
                part = slice(starts[own], starts[own + 1])
                weight[pair, svm.support_[part]] = svm.dual_coef_[row, part]
        self.weight_, self.bias_ = weight, np.asarray(svm.intercept_)
        if n_classes == 2:
            self.weight_, self.bias_ = -self.weight_, -self.bias_  # libsvm turns two classes round

    def _choose(self, kernel: NDArray[Any], targets: NDArray[np.int64]) -> float:
        training, held = hold_out(targets, 0.1, self.seed)
        if not len(held):
            return 1.0
        own, asked = kernel[np.ix_(training, training)], kernel[np.ix_(held, training)]
        right = [
            SVC(C=cost, kernel="precomputed").fit(own, targets[training]).score(asked, targets[held]) for cost in _COSTS
        ]
        return _COSTS[int(np.argmax(right))]

    def _scores(self, texts: list[str]) -> NDArray[Any]:
        decided = np.asarray((self._paths(texts) @ self.paths_.T) @ self.weight_.T + self.bias_)
        n = len(self.labels_)
        votes, sums = np.zeros((len(texts), n)), np.zeros((len(texts), n))
        for pair, (i, j) in zip(decided.T, combinations(range(n), 2), strict=True):
            votes[:, i] += pair > 0
            votes[:, j] += pair <= 0
            sums[:, i] += pair
            sums[:, j] -= pair
        return np.asarray(votes + sums / (3 * (np.abs(sums) + 1)))  # among equals, the clearer

    def _paths(self, texts: list[str]) -> Any:
        """Each document's unit vector over pairs of words: a sparse matrix (documents, pairs)."""
        words = self.vocabulary_
        graphs = build_graphs(words.encode(texts, self.tokenizer_), GraphConfig(window=2, directed=False))
        size, n = np.diff(graphs.node_start), len(graphs.words)
        owner = np.repeat(np.arange(len(texts)), size)
        shift = np.repeat(graphs.node_start[:-1], np.diff(graphs.edge_start))
        ones = np.ones(len(graphs.source))
        step = sparse.csr_matrix((ones, (graphs.target + shift, graphs.source + shift)), shape=(n, n))
        nodes, value = np.arange(n), np.ones(n)
        result, seen = [(nodes, nodes, value)], sparse.identity(n, format="csr")
        reached = step
        for length in range(1, self.depth + 1):
            fresh = (reached - reached.multiply(seen)).tocoo()  # pairs that no shorter path links
            fresh.eliminate_zeros()
            result.append((fresh.row, fresh.col, np.full(fresh.nnz, 1.0 / length)))
            pattern = sparse.csr_matrix((np.ones(fresh.nnz), (fresh.row, fresh.col)), shape=(n, n))
            seen = seen + pattern
            reached = ((pattern @ step) > 0).astype(float).tocsr()
        row, column, values = (np.concatenate(part) for part in zip(*result, strict=True))
        ids = graphs.words.astype(np.int64)
        pairs = ids[row] * words.n_rows + ids[column]
        return self._matrix(owner[row], pairs, values, len(texts))

    def _matrix(self, row: NDArray[Any], pairs: NDArray[Any], values: NDArray[Any], n: int) -> Any:
        """Rows of unit length; pairs that the training documents do not have are dropped, but count in the length."""
        lengths = np.sqrt(np.bincount(row, values**2, minlength=n)).clip(min=1e-12)
        if not hasattr(self, "pairs_"):
            self.pairs_ = np.unique(pairs)
        place = np.searchsorted(self.pairs_, pairs).clip(max=max(len(self.pairs_) - 1, 0))
        known = self.pairs_[place] == pairs if len(self.pairs_) else np.zeros(len(pairs), bool)
        data = (values / lengths[row])[known]
        return sparse.csr_matrix((data, (row[known], place[known])), shape=(n, len(self.pairs_)))

    def _state(self, folder: Path) -> tuple[Arrays, dict[str, Any]]:
        write_json(folder / VOCABULARY, list(self.vocabulary_.words))
        paths = {name: getattr(self.paths_, name) for name in _PATHS}
        return {"pairs": self.pairs_, **paths, "weight": self.weight_, "bias": self.bias_}, {"C": self.C_}

    def _restore(self, files: ModelFiles, facts: dict[str, Any]) -> None:
        words = files.words()
        self.vocabulary_ = Vocabulary(words, seen=len(words))
        n = len(self.labels_)
        shapes: dict[str, tuple[int | None, ...]] = {name: (None,) for name in ("pairs", *_PATHS)}
        shapes |= {"weight": (n * (n - 1) // 2, None), "bias": (n * (n - 1) // 2,)}
        arrays = files.tensors(shapes, integers={"pairs", "indices", "indptr"})
        depth_is_known = type(self.depth) is int and 1 <= self.depth <= 10
        shape = arrays["weight"].shape[1], len(arrays["pairs"])
        self.paths_ = sparse.csr_matrix(tuple(arrays[name] for name in _PATHS), shape=shape)
        self.paths_.check_format()  # raises ValueError
        if not depth_is_known or self.paths_.nnz < len(arrays["data"]) or (np.diff(arrays["pairs"]) <= 0).any():
            raise files.damaged(WEIGHTS, "the sparse matrix of paths does not hold together")
        self.pairs_, self.C_ = arrays["pairs"], float(facts["C"])
        self.weight_, self.bias_ = arrays["weight"], arrays["bias"]
