"""TF-IDF and a linear SVM: what every accuracy is printed beside."""

from typing import Any

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.svm import LinearSVC

from mpad.text.tokenizer import KimTokenizer


def tfidf_svm() -> Pipeline:
    """The paper's words and pairs of them, weighed by TF-IDF, into a linear SVM with its usual settings."""
    words = KimTokenizer().words
    weights = TfidfVectorizer(
        tokenizer=words, token_pattern=None, lowercase=False, ngram_range=(1, 2), sublinear_tf=True
    )
    return make_pipeline(weights, LinearSVC())


def tfidf_svm_config() -> dict[str, Any]:
    """What it hangs on, as JSON has it."""
    weights, svm = (step for _, step in tfidf_svm().steps)
    return {
        "words": "kim",
        "ngram_range": list(weights.ngram_range),
        "sublinear_tf": weights.sublinear_tf,
        "C": svm.C,
        "loss": svm.loss,
    }
