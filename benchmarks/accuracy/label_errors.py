"""`python -m benchmarks.accuracy.label_errors [DATASET …]`: how well wrong labels are found, and what that is worth.

Labels of 4,000 training documents are replaced by other ones at random: 5, 10 or 20 %. Measured are the shares of
really wrong labels among the 100 and 400 most suspicious documents, and among all that are reported: by
`find_label_errors`, by cleanlab's `find_label_issues` on the same probabilities (if it is installed), and by cleanlab
on five-fold TF-IDF + logistic regression, as its tutorial has it.

For 20 % the default model is then trained on the noisy labels, on those after all suggestions were accepted, on those
after a person reviewed the 400 most suspicious ones (and so corrected the wrong ones among them), and on the true ones.
Its accuracy on clean test documents is measured. Writes label_errors.json.
"""

import json
import sys
import time
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from benchmarks import results
from mpad import MPADClassifier, load_dataset
from mpad.data.labels import learn_labels
from mpad.evaluate.label_errors import find_label_errors
from mpad.evaluate.out_of_fold import predict_out_of_fold
from mpad.paper import zoo
from mpad.paper.experiments.provenance import versions

_DATASETS = "polarity", "trec", "subjectivity", "tweets"
_RATES = 0.05, 0.1, 0.2
_MOST, _TESTED = 4_000, 2_000
_REVIEWED = 400
_SEED = 0


def main() -> None:
    """Run the datasets named, or all four."""
    results.check_clean()
    rows: list[dict[str, Any]] = []
    for name in sys.argv[1:] or _DATASETS:
        rows += _measure(name)
    record = {"commit": results.measured_commit(), "versions": versions(), "seed": _SEED, "rows": rows}
    (results.HERE / "label_errors.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def _measure(name: str) -> list[dict[str, Any]]:
    texts, labels, tested = _documents(name)
    classes, truth = np.unique(labels, return_inverse=True)
    rows = []
    for rate in _RATES:
        generator = np.random.default_rng(_SEED)
        wrong = generator.random(len(truth)) < rate
        given = np.where(wrong, (truth + generator.integers(1, len(classes), len(truth))) % len(classes), truth)
        start = time.perf_counter()
        errors = find_label_errors(texts, classes[given])
        row: dict[str, Any] = {"dataset": name, "rate": rate, "documents": len(texts), "wrong": int(wrong.sum())}
        row["seconds"] = time.perf_counter() - start
        row["mpad"] = _scores([error.row for error in errors.errors], wrong)
        known = learn_labels(classes[given])
        plain = make_pipeline(TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True), LogisticRegression(C=10))
        probabilities = predict_out_of_fold(plain, texts, known, given, folds=5).probabilities
        for system, own in (("cleanlab", errors.predictions.probabilities), ("cleanlab, TF-IDF", probabilities)):
            if (ranked := _cleanlab(given, own)) is not None:
                row[system] = _scores(ranked, wrong)
        if rate == max(_RATES):
            accepted, reviewed = given.copy(), given.copy()
            for place, error in enumerate(errors.errors):
                accepted[error.row] = np.searchsorted(classes, error.suggested)
                if place < _REVIEWED:
                    reviewed[error.row] = truth[error.row]
            versions_of = {"noisy": given, "accepted": accepted, "reviewed": reviewed, "clean": truth}
            for kind, own in versions_of.items():
                model = MPADClassifier(random_state=_SEED, device="cpu", verbose=False).fit(texts, classes[own])
                svm = zoo.make("tfidf-svm").fit(texts, classes[own])
                row[f"accuracy, {kind}"] = [100 * float(one.score(*tested)) for one in (model, svm)]
        rows.append(row)
        print(row, flush=True)
    return rows


def _documents(name: str) -> tuple[list[str], NDArray[Any], tuple[list[str], NDArray[Any]]]:
    """Training documents, their labels, and test documents: those of the dataset, or other training documents."""
    dataset = load_dataset(name)
    order = np.random.default_rng(_SEED).permutation(len(dataset.train))
    texts, labels = dataset.train.texts, np.array(dataset.train.labels)
    chosen, rest = order[:_MOST], order[_MOST : _MOST + _TESTED]
    if len(dataset.test):
        tested = list(dataset.test.texts), np.array(dataset.test.labels)
    else:
        tested = [texts[k] for k in rest], labels[rest]
    return [texts[k] for k in chosen], labels[chosen], tested


def _scores(ranked: list[int], wrong: NDArray[np.bool_]) -> dict[str, float]:
    """Precision at 100 and at 400, and precision and recall of all that is reported."""
    found = wrong[ranked]
    return {
        "at 100": float(found[:100].mean()),
        "at 400": float(found[:400].mean()),
        "reported": len(ranked),
        "precision": float(found.mean()),
        "recall": float(found.sum() / wrong.sum()),
    }


def _cleanlab(given: NDArray[np.int64], probabilities: NDArray[np.float64]) -> list[int] | None:
    try:
        cleanlab = import_module("cleanlab.filter")
    except ImportError:
        return None
    found = cleanlab.find_label_issues(given, probabilities, return_indices_ranked_by="self_confidence")
    return [int(row) for row in found]


if __name__ == "__main__":
    main()
