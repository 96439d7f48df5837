"""TF-IDF of words and pairs of words, and a linear SVM: what every accuracy is printed beside."""

from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.svm import LinearSVC

from mpad.files.tensors import Arrays
from mpad.paper.baselines.base import PlainClassifier, fit_linear, linear_scores, linear_shapes
from mpad.storage.model_folder import VOCABULARY, ModelFiles, write_json
from mpad.text.tokenizer import KimTokenizer, Tokenizer


def tfidf_svm(tokenizer: Tokenizer | None = None) -> Pipeline:
    """Words, the paper's if not others, and pairs of them, weighed by TF-IDF, into a linear SVM as it usually is."""
    words = (tokenizer or KimTokenizer()).words
    weights = TfidfVectorizer(
        tokenizer=words, token_pattern=None, lowercase=False, ngram_range=(1, 2), sublinear_tf=True
    )
    return make_pipeline(weights, LinearSVC(random_state=0))


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
    """The reference baseline (`tfidf_svm`) with a model folder."""

    kind = "tfidf-svm"
    many_labels = True

    def _learn(self, texts: list[str], targets: NDArray[Any], n_classes: int) -> None:
        self.tfidf_, svm = tfidf_svm(self.tokenizer_)
        self.weight_, self.bias_ = fit_linear(svm, self.tfidf_.fit_transform(texts), targets)

    def _scores(self, texts: list[str]) -> NDArray[Any]:
        return linear_scores(self.tfidf_.transform(texts), self.weight_, self.bias_)

    def _state(self, folder: Path) -> tuple[Arrays, dict[str, Any]]:
        words = sorted(self.tfidf_.vocabulary_, key=self.tfidf_.vocabulary_.get)
        write_json(folder / VOCABULARY, words)
        return {"idf": self.tfidf_.idf_, "weight": self.weight_, "bias": self.bias_}, {}

    def _restore(self, files: ModelFiles, facts: dict[str, Any]) -> None:
        self.tfidf_, _ = tfidf_svm(self.tokenizer_)
        words = files.words()
        arrays = files.tensors({"idf": (len(words),), **linear_shapes(len(words), self.labels_)})
        self.tfidf_.vocabulary_ = {word: place for place, word in enumerate(words)}
        self.tfidf_.idf_ = arrays["idf"]
        self.weight_, self.bias_ = arrays["weight"], arrays["bias"]
