"""WMD: nearest neighbours by word mover's distance (Kusner et al., ICML 2015)."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from mpad.errors import InputError
from mpad.extras import require
from mpad.files.tensors import Arrays
from mpad.paper.baselines.base import PlainClassifier
from mpad.storage.model_folder import VOCABULARY, WEIGHTS, ModelFiles, write_json
from mpad.text.vectors import load_vectors
from mpad.text.vocabulary import learn_vocabulary
from mpad.training.task import hold_out

Floats = NDArray[np.float64]
_MOST_NEIGHBOURS = 19  # as in the paper


@dataclass(frozen=True)
class Cloud:
    """A document as a cloud of its words."""

    words: NDArray[np.int64]  # (n,) rows of the table
    points: Floats  # (n, width), where they lie
    mass: Floats  # (n,), the share of each; adds up to 1, or nothing is there

    @property
    def centre(self) -> Floats:
        """The mean of its words: (width,)."""
        return np.asarray(self.mass @ self.points)


@dataclass(eq=False, repr=False)
class WMD(PlainClassifier):
    """The nearest training documents by the least that words must travel, found as the paper's prefetch and prune does.

    WMD(a, b) = min Σ T_ij ‖x_i − x_j‖ over T ≥ 0 with Σ_j T_ij = a_i, Σ_i T_ij = b_j

    Documents are tried in the order of the distance of their centres, which is a lower bound; of those beyond the
    first k, at most `tried`, and only such whose relaxed distance (each word to the nearest, a better bound) could
    still win. `neighbours` None: chosen up to 19 on a tenth of the training documents. Words without a
    vector do not count, nor do English stop words (scikit-learn's list) unless `stop_words` keeps them; a document of
    nothing else keeps its own. `vectors` is the file that has the vectors.
    """

    kind = "wmd"
    needs = ("ot",)

    vectors: str | None = None
    neighbours: int | None = None
    tried: int = 100
    stop_words: bool = False
    seed: int = 0

    def _learn(self, texts: list[str], targets: NDArray[np.int64], n_classes: int) -> None:
        if self.vectors is None:
            raise InputError("'wmd' needs word vectors: name their file as vectors=...")
        require("ot", extra="baselines")
        vocabulary, _ = learn_vocabulary(texts, self.tokenizer_)
        result = load_vectors(self.vectors, vocabulary, extra=50_000)
        assert result.known is not None
        words = [word for word, known in zip(result.vocabulary.words, result.known, strict=True) if known]
        rows = result.rows[: len(result.vocabulary)][result.known].astype(np.float16)  # as they will be saved
        self._take(words, rows, targets)
        self._remember([self._cloud(text) for text in texts])
        self.neighbours_ = self.neighbours or self._choose(targets)

    def _take(self, words: Sequence[str], rows: NDArray[Any], targets: NDArray[np.int64]) -> None:
        self.words_ = {word: place for place, word in enumerate(words)}
        self.rows_ = np.asarray(rows, np.float64)
        self.targets_ = targets

    def _remember(self, clouds: list[Cloud]) -> None:
        self.clouds_ = clouds
        self.centres_ = np.array([cloud.centre for cloud in clouds])

    def _cloud(self, text: str) -> Cloud:
        known = [word for word in self.tokenizer_.words(text) if word in self.words_]
        telling = known if self.stop_words else [word for word in known if word not in ENGLISH_STOP_WORDS]
        ids = [self.words_[word] for word in telling or known]
        distinct, counts = np.unique(np.array(ids, np.int64), return_counts=True)
        return Cloud(distinct, self.rows_[distinct], counts / max(counts.sum(), 1))

    def _choose(self, targets: NDArray[np.int64]) -> int:
        training, held = hold_out(targets, 0.1, self.seed)
        most = min(_MOST_NEIGHBOURS, len(training))
        if not len(held):
            return 1
        near = [self._nearest(self.clouds_[row], training, most) for row in held]
        right = np.zeros(most)
        for row, rows in zip(held, near, strict=True):
            for k in range(1, len(rows) + 1):
                right[k - 1] += _vote(targets[rows[:k]], len(self.labels_)).argmax() == targets[row]
        return int(right.argmax()) + 1

    def _scores(self, texts: list[str]) -> NDArray[Any]:
        everything = np.arange(len(self.clouds_))
        result = [self._nearest(self._cloud(text), everything, self.neighbours_) for text in texts]
        return np.array([_vote(self.targets_[rows], len(self.labels_)) for rows in result])

    def _nearest(self, cloud: Cloud, among: NDArray[np.int64], k: int) -> NDArray[np.int64]:
        """The k nearest of some training documents, nearest first."""
        order = np.argsort(np.linalg.norm(self.centres_[among] - cloud.centre, axis=1), kind="stable")
        best: list[tuple[float, int]] = []  # (distance, row), nearest first
        for place in order[: k + self.tried]:
            row = int(among[place])
            other = self.clouds_[row]
            cost = distances(cloud.points, other.points)
            if len(best) < k or relaxed(cost, cloud.mass, other.mass) < best[-1][0]:
                best = sorted([*best, (movers_distance(cost, cloud.mass, other.mass), row)])[:k]
        return np.array([row for _, row in best], np.int64)

    def _state(self, folder: Path) -> tuple[Arrays, dict[str, Any]]:
        write_json(folder / VOCABULARY, list(self.words_))
        sizes = np.array([len(cloud.mass) for cloud in self.clouds_])
        arrays = {
            "rows": self.rows_.astype(np.float16),
            "words": np.concatenate([cloud.words for cloud in self.clouds_]),
            "mass": np.concatenate([cloud.mass for cloud in self.clouds_]),
            "sizes": sizes,
            "targets": self.targets_,
        }
        return arrays, {"neighbours": self.neighbours_}

    def _restore(self, files: ModelFiles, facts: dict[str, Any]) -> None:
        words, n = files.words(), len(self.labels_)
        shapes = {"rows": (len(words), None), **{name: (None,) for name in ("words", "mass", "sizes", "targets")}}
        arrays = files.tensors(shapes, integers={"words", "sizes", "targets"})
        sizes, targets, own = arrays["sizes"], arrays["targets"], arrays["words"]
        for array, most in ((own, len(words)), (targets, n)):
            if len(array) and not 0 <= array.min() <= array.max() < most:
                raise files.damaged(WEIGHTS, "a word or a class has a number that there is not")
        if (
            len(sizes) != len(targets)
            or (sizes < 0).any()
            or sizes.sum() != len(own)
            or len(own) != len(arrays["mass"])
        ):
            raise files.damaged(WEIGHTS, "documents and their words do not hold together")
        if type(facts["neighbours"]) is not int or type(self.tried) is not int or facts["neighbours"] < 1:
            raise TypeError("neighbours are counted by whole numbers")
        self._take(words, arrays["rows"], arrays["targets"])
        cuts = np.cumsum(arrays["sizes"])[:-1]
        parts = zip(np.split(arrays["words"], cuts), np.split(arrays["mass"], cuts), strict=True)
        self._remember([Cloud(own, self.rows_[own], mass) for own, mass in parts])
        self.neighbours_ = int(facts["neighbours"])


def distances(a: Floats, b: Floats) -> Floats:
    """Euclidean distances of all pairs: (words of a, words of b)."""
    squared = (a * a).sum(1)[:, None] + (b * b).sum(1) - 2 * a @ b.T
    return np.asarray(np.sqrt(np.maximum(squared, 0)))


def relaxed(cost: Floats, a: Floats, b: Floats) -> float:
    """The relaxed distance: every word goes to the nearest one, whatever room is there. A lower bound."""
    if not cost.size:
        return 0.0
    return float(max(a @ cost.min(1), b @ cost.min(0)))


def movers_distance(cost: Floats, a: Floats, b: Floats) -> float:
    """The exact distance; a document without words is infinitely far from all others."""
    if not cost.size:
        return float("inf")
    return float(require("ot", extra="baselines").emd2(a, b, cost))


def _vote(targets: NDArray[np.int64], n_classes: int) -> Floats:
    """Votes of neighbours, nearest first; among equals the class of the nearest wins."""
    votes = np.bincount(targets, minlength=n_classes).astype(float)
    for place, target in enumerate(targets):
        votes[target] += 0.5 / (len(targets) + 1) / (place + 1) ** 2
    return votes
