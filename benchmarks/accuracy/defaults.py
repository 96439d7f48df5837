"""`python -m benchmarks.accuracy.defaults [DATASET …]`: the default model and linear ones on unseen parts.

Fits on the training part and tests on the test part, or on the first of ten folds; three seeds of the default, one of
the others, in which nothing is left to chance. Writes defaults.json, one row a dataset, with seeds, commit and
versions. Datasets come from the folder MPAD_DATA; those that are not there are left out.
"""

import json
import sys
import time
from typing import Any

import numpy as np

from benchmarks import results
from mpad import MPADClassifier, load_dataset
from mpad.errors import MPADError
from mpad.paper import zoo
from mpad.paper.datasets.catalogue import CATALOGUE, FOLDS, NAMES
from mpad.paper.experiments.provenance import versions
from mpad.paper.experiments.splits import split
from mpad.text.distilled import auto_source

_SHORT = "docstrings", "trec", "bbcsport", "mpqa", "polarity", "subjectivity", "snippets", "reuters"
_BASELINES = "tfidf-svm", "linear-stack"
_SEEDS = 0, 1, 2


def main() -> None:
    """Run the datasets named, or all but the largest."""
    results.check_clean()
    chosen = sys.argv[1:] or _SHORT
    unknown = sorted(set(chosen) - set(NAMES))
    if unknown:
        sys.exit(f"no dataset '{unknown[0]}' (known: {', '.join(NAMES)})")
    rows = []
    for name in chosen:
        try:
            rows.append(_row(name))
        except MPADError as error:
            print(f"{name}: left out: {error}", file=sys.stderr)
            continue
        row = rows[-1]
        print(
            f"{name:<14} mpad {row['mpad']:.1f} ± {row['margin']:.1f}   "
            + "   ".join(f"{other} {row[other]:.1f}" for other in _BASELINES)
            + f"   fit {row['fit_seconds']:.0f} s, {row['train']:,} documents; {', '.join(row['answers_by'])} answer",
            flush=True,
        )
    mean = {name: float(np.mean([row[name] for row in rows])) for name in ("mpad", *_BASELINES)}
    print("mean           " + "   ".join(f"{name} {value:.2f}" for name, value in mean.items()))
    record = {
        "commit": results.measured_commit(),
        "versions": versions(),
        "vectors": bool(auto_source()),
        "seeds": _SEEDS,
        "rows": rows,
    }
    file = results.HERE / "defaults.json"
    file.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def table(rows: list[dict[str, Any]]) -> str:
    """The table of docs/results.md."""
    lines = ["| | documents | TF-IDF + linear SVM | `linear-stack` | **MPAD** | fit |", "| --- |" + " --- |" * 5]
    for row in rows:
        known = CATALOGUE.get(row["dataset"])
        title = "embedded corpus" if known is None else known.title + (" (one fold)" if known.parts == FOLDS else "")
        accuracies = [f"{row[name]:.1f}" for name in _BASELINES]
        ours = f"**{row['mpad']:.1f}** ± {row['margin']:.1f}"
        lines.append(f"| {title} | {row['train']:,} | {' | '.join(accuracies)} | {ours} | {row['fit_seconds']:.0f} s |")
    means = [f"{np.mean([row[name] for row in rows]):.2f}" for name in (*_BASELINES, "mpad")]
    lines.append(f"| mean | | {means[0]} | {means[1]} | **{means[2]}** | |")
    return "\n".join(lines) + "\n"


def _row(name: str) -> dict[str, Any]:
    dataset = load_dataset(name)
    if dataset.cross_validated:
        corpus = split(dataset)
        texts, labels = corpus.texts, np.array(corpus.labels)
        first = corpus.splits[0]
        learnt = np.concatenate([first.training, *([] if first.validation is None else [first.validation])])
        train = [texts[k] for k in learnt], labels[learnt]
        tested = [texts[k] for k in first.test], labels[first.test]
    else:
        train = dataset.train.texts, np.array(dataset.train.labels)
        tested = dataset.test.texts, np.array(dataset.test.labels)
    seconds, by_seed, held_out, answers_by = [], [], [], []
    for seed in _SEEDS:
        start = time.perf_counter()
        model = MPADClassifier(random_state=seed, device="cpu").fit(*train)
        seconds.append(time.perf_counter() - start)
        by_seed.append(float(model.score(*tested)))
        held_out.append(model.held_out_accuracy_)
        answers_by.append(model.answers_by_)
    accuracy = float(np.mean(by_seed))
    row: dict[str, Any] = {"dataset": name, "train": len(train[0]), "test": len(tested[0])}
    row |= {"fit_seconds": float(np.median(seconds)), "mpad": 100 * accuracy}
    row |= {"margin": 100 * _margin(accuracy, len(tested[0]), float(np.var(by_seed, ddof=1)) / len(by_seed))}
    row |= {"by_seed": [100 * each for each in by_seed], "held_out": held_out, "answers_by": answers_by}
    return row | {other: 100 * float(zoo.make(other).fit(*train).score(*tested)) for other in _BASELINES}


def _margin(accuracy: float, n: int, between_seeds: float) -> float:
    """Half of a 95 % interval: Wilson's of so many test documents, and the seeds' scatter."""
    z = 1.96
    sampling = z * (accuracy * (1 - accuracy) / n + z**2 / (4 * n**2)) ** 0.5 / (1 + z**2 / n)
    return float((sampling**2 + z**2 * between_seeds) ** 0.5)


if __name__ == "__main__":
    main()
