"""TF-IDF of words and pairs of words, and a linear SVM: what every accuracy is printed beside."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.svm import LinearSVC

from mpad.baselines.base import PlainClassifier, linear_scores, linear_shapes
from mpad.io.tensors import Arrays
from mpad.storage.model_folder import VOCABULARY, ModelFiles, write_json
from mpad.text.tokenizer import KimTokenizer


def tfidf_svm() -> Pipeline:
    """The paper's words and pairs of them, weighed by TF-IDF, into a linear SVM with its usual settings."""
    words = KimTokenizer().words
    weights = TfidfVectorizer(
        tokenizer=words, token_pattern=None, lowercase=False, ngram_range=(1, 2), sublinear_tf=True
    )
    return make_pipeline(weights, LinearSVC())


def tfidf_svm_config() -> dict[str, Any]:
    """Return the settings that determine the result, as a JSON-serialisable dict."""
    weights, svm = (step for _, step in tfidf_svm().steps)
    return {
        "words": "kim",
        "ngram_range": list(weights.ngram_range),
        "sublinear_tf": weights.sublinear_tf,
        "C": svm.C,
        "loss": svm.loss,
    }


class TfidfSVM(PlainClassifier):
    """What every accuracy is printed beside (`tfidf_svm`), with a folder of its own."""

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
