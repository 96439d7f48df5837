"""`python -m benchmarks.accuracy.labeling [DATASET …]`: labeling what helps most, against labeling at random.

A pool of 2,000 training documents without labels; labels are taken in batches as `mpad label` takes them, chosen by
`choose_next` or at random, and the model of `mpad label` is fitted after each. Accuracy is that on 1,000 other
documents of the training part. The goal is 90 % of the accuracy of the model with all labels of the pool: how many
labels does each way need? Several seeds (pool, and random order). Writes labeling.json and docs/labeling.png.
"""

import json
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import results
from mpad import load_dataset
from mpad.evaluate.label_errors import default_classifier
from mpad.evaluate.neighbors import text_vectors
from mpad.extras import require
from mpad.labeling import choose_next
from mpad.paper.experiments.provenance import versions

_DATASETS = "polarity", "trec", "tweets"
_SEEDS = range(5)
_POOL, _TESTED, _MOST, _BATCH = 2_000, 1_000, 160, 20
_SHARE = 0.9  # of the accuracy with all labels
_WAYS = "chosen", "random"


def main() -> None:
    """Run the datasets named, or all three."""
    results.check_clean()
    rows = [_measure(name, seed) for name in sys.argv[1:] or _DATASETS for seed in _SEEDS]
    record = {"commit": results.measured_commit(), "versions": versions(), "seeds": [*_SEEDS], "rows": rows}
    (results.HERE / "labeling.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    _plot(rows)


def _measure(name: str, seed: int) -> dict[str, Any]:
    train = load_dataset(name).train
    order = np.random.default_rng(seed).permutation(len(train))
    tested = order[: min(_TESTED, len(order) // 3)]
    pool = order[len(tested) : len(tested) + _POOL]
    labels = np.array(train.labels)
    texts, truth = [train.texts[k] for k in pool], labels[pool]
    unseen = [train.texts[k] for k in tested], labels[tested]
    final = default_classifier(texts).fit(texts, truth).score(*unseen)
    vectors = text_vectors(texts)
    curves = {way: _curve(way, texts, truth, vectors, unseen, seed) for way in _WAYS}
    row: dict[str, Any] = {"dataset": name, "seed": seed, "pool": len(texts), "final": final, "curves": curves}
    row["needed"] = {
        way: next((n for n, score in curve if score >= _SHARE * final), None) for way, curve in curves.items()
    }
    print({key: value for key, value in row.items() if key != "curves"}, flush=True)
    return row


def _curve(
    way: str, texts: list[str], truth: NDArray[Any], vectors: NDArray[np.float32], unseen: Any, seed: int
) -> list[tuple[int, float]]:
    """Accuracy after each batch."""
    shuffled = np.random.default_rng([seed, 1]).permutation(len(texts))
    labeled: list[int] = []
    probabilities, curve = None, []
    while len(labeled) < _MOST:
        known = np.array(labeled, np.int64)
        if way == "random":
            labeled += shuffled[len(labeled) : len(labeled) + _BATCH].tolist()
        else:
            labeled += choose_next(vectors, known, np.setdiff1d(np.arange(len(texts)), known), _BATCH, probabilities)
        if len(set(truth[labeled])) < 2:
            continue
        model = default_classifier(texts).fit([texts[k] for k in labeled], truth[labeled])
        probabilities = model.predict_proba(texts)
        curve.append((len(labeled), float(model.score(*unseen))))
    return curve


def _plot(rows: list[dict[str, Any]]) -> None:
    """Draw the mean curves of each dataset."""
    names = list(dict.fromkeys(row["dataset"] for row in rows))
    figure = require("matplotlib.figure", extra="plots").Figure(figsize=(3.4 * len(names), 3.2), layout="constrained")
    for axes, name in zip(np.atleast_1d(figure.subplots(1, len(names))), names, strict=True):
        own = [row for row in rows if row["dataset"] == name]
        for way, color in zip(_WAYS, ("#1b4f8a", "#d66a10"), strict=True):
            counts = [n for n, _ in own[0]["curves"][way]]
            means = [np.mean([dict(row["curves"][way]).get(n, np.nan) for row in own]) for n in counts]
            axes.plot(counts, 100 * np.array(means), label=way, color=color, marker="o", markersize=3)
        goal = 100 * _SHARE * float(np.mean([row["final"] for row in own]))
        axes.axhline(goal, color="0.6", linewidth=1, linestyle="--")
        axes.set(title=name, xlabel="labels", ylabel="accuracy, %")
    axes.legend(frameon=False)
    figure.savefig(results.HERE.parent / "docs" / "labeling.png", dpi=160)


if __name__ == "__main__":
    main()
