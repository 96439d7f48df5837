"""TF-IDF of words and pairs of words, and a linear SVM."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpad.baseline import tfidf_svm
from mpad.io.tensors import Arrays
from mpad.model_folder import VOCABULARY, ModelFiles, write_json
from mpad.rivals.plain import PlainClassifier, linear_scores, linear_shapes


class TfidfSVM(PlainClassifier):
    """What every accuracy is printed beside (see `mpad.baseline`), with a folder of its own."""

    kind = "tfidf-svm"

    def _learn(self, texts: list[str], targets: NDArray[np.int64], n_classes: int) -> None:
        self.pipeline_ = tfidf_svm().fit(texts, targets)

    def _scores(self, texts: list[str]) -> NDArray[Any]:
        weights, svm = self.pipeline_[0], self.pipeline_[1]
        return linear_scores(weights.transform(texts), svm.coef_, svm.intercept_)

    def _state(self, folder: Path) -> tuple[Arrays, dict[str, Any]]:
        weights, svm = self.pipeline_[0], self.pipeline_[1]
        words = sorted(weights.vocabulary_, key=weights.vocabulary_.get)
        write_json(folder / VOCABULARY, words)
        return {"idf": weights.idf_, "weight": svm.coef_, "bias": np.atleast_1d(svm.intercept_)}, {}

    def _restore(self, files: ModelFiles, facts: dict[str, Any]) -> None:
        self.pipeline_ = tfidf_svm()
        weights, svm = self.pipeline_[0], self.pipeline_[1]
        words = files.words()
        arrays = files.tensors({"idf": (len(words),), **linear_shapes(len(words), len(self.labels_))})
        weights.vocabulary_ = {word: place for place, word in enumerate(words)}
        weights.idf_ = arrays["idf"]
        svm.coef_, svm.intercept_ = arrays["weight"], arrays["bias"]
        svm.classes_ = np.arange(len(self.labels_))
