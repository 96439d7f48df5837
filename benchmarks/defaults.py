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
from mpad.datasets.names import NAMES
from mpad.errors import MPADError
from mpad.experiments.provenance import commit, versions
from mpad.experiments.splits import split
from mpad.text.distilled import auto_source

_SHORT = "docstrings", "trec", "bbcsport", "mpqa", "polarity", "subjectivity", "snippets", "reuters"
_BASELINES = "tfidf-svm", "linear-stack"


def main() -> None:
    """Run the datasets named, or all but the largest."""
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
    record = {"commit": commit(), "versions": versions(), "vectors": bool(auto_source()), "seed": 0, "rows": rows}
    file = results.HERE / "defaults.json"
    file.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


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
