"""`python -m benchmarks.speed.baselines`: time an epoch of each baseline on a GPU against MPAD; write baselines.json.

The corpus comes from the folder MPAD_DATA, word vectors from the file MPAD_VECTORS; without them they are made up.
"""

import os
import statistics
import sys
from pathlib import Path

from benchmarks import results
from benchmarks.corpus import Corpus, polarity
from benchmarks.results import Row
from mpad.paper.experiments.protocol import make_cell, make_estimator, reads_trees
from mpad.paper.networks.baselines import BASELINES

_EPOCHS, _BATCH = 5, 128


def main() -> None:
    """Run everything."""
    results.check_clean()
    corpus = polarity(10_662)
    mpad, rows = _epoch("mpad", corpus, _BATCH), []
    for name in (name for name in BASELINES if not reads_trees(name)):
        each, by_protocol = _epoch(name, corpus, _BATCH), _epoch(name, corpus)
        print(f"{name}: {1000 * each:.0f} ms an epoch, mpad {1000 * mpad:.0f}", file=sys.stderr, flush=True)
        rows.append(
            Row(
                f"an epoch of {name}, {len(corpus.texts):,} documents of {corpus.name}",
                f"{1000 * each:.0f} ms",
                f"{1000 * mpad:.0f} ms",
                mpad / each,
                "" if name == "lstmn" else "at least 0.33",
                f"batches of {_BATCH} documents for both; of 64, as in the protocol, {1000 * by_protocol:.0f} ms",
            )
        )
    results.write({"An epoch of a rival, against one of mpad": results.on(corpus.text, rows)}, "baselines", _folder())


def _folder() -> Path:
    return Path(os.environ.get("OUT") or results.HERE)


def _epoch(name: str, corpus: Corpus, batch_size: int | None = None) -> float:
    """Seconds of an epoch and its validation by the protocol, alone on the GPU; the first, which records, left out."""
    vectors = os.environ.get("MPAD_VECTORS")
    given = {} if vectors else {"vectors": None, "vector_size": 300}
    options = {"device": "cuda", "max_epochs": _EPOCHS, "patience": None, "random_state": 0}
    chosen = {} if batch_size is None else {"batch_size": batch_size}
    estimator = make_estimator(make_cell("polarity", name), vectors or "none", **given, **options, **chosen)
    times: list[float] = []
    estimator.fit(corpus.texts, corpus.labels, sink=lambda report: times.append(report.seconds))
    return statistics.median(times[1:])


if __name__ == "__main__":
    main()
