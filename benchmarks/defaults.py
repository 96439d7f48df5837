"""`python -m benchmarks.defaults [DATASET …]`: the default model beside linear ones, on parts that chose nothing.

Fits on the training part and tests on the test part, or on the first of ten folds; writes defaults.json, one row a
dataset, with seed, commit and versions. Datasets come from the folder MPAD_DATA; those that are not there are left out.
"""

import json
import sys
import time
from typing import Any

import numpy as np

from benchmarks import results
from mpad import MPADClassifier, load_dataset, zoo
from mpad._experiments.provenance import versions
from mpad._experiments.splits import split
from mpad._text.distilled import auto_source
from mpad.datasets.catalogue import CATALOGUE, FOLDS
from mpad.datasets.names import NAMES
from mpad.errors import MPADError

_SHORT = "docstrings", "trec", "bbcsport", "mpqa", "polarity", "subjectivity", "snippets", "reuters"
_BASELINES = "tfidf-svm", "linear-stack"


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
            + f"   fit {row['fit_seconds']:.0f} s, {row['train']:,} documents; {row['answers_by']} answers",
            flush=True,
        )
    mean = {name: float(np.mean([row[name] for row in rows])) for name in ("mpad", *_BASELINES)}
    print("mean           " + "   ".join(f"{name} {value:.2f}" for name, value in mean.items()))
    record = {
        "commit": results.measured_commit(),
        "versions": versions(),
        "vectors": bool(auto_source()),
        "seed": 0,
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
    start = time.perf_counter()
    model = MPADClassifier(random_state=0, device="cpu").fit(*train)
    seconds = time.perf_counter() - start
    row: dict[str, Any] = {"dataset": name, "train": len(train[0]), "test": len(tested[0]), "fit_seconds": seconds}
    accuracy = float(model.score(*tested))
    row |= {"mpad": 100 * accuracy, "margin": 196 * (accuracy * (1 - accuracy) / len(tested[0])) ** 0.5}
    row |= {"held_out": model.held_out_accuracy_, "answers_by": model.answers_by_}
    return row | {other: 100 * float(zoo.make(other).fit(*train).score(*tested)) for other in _BASELINES}


if __name__ == "__main__":
    main()
