"""`python -m benchmarks.shortfall [DATASET …]`: what the distance to the paper's numbers is made of.

One training of 200 epochs with the authors' network tells, of one seed, what every patience would have kept: test
accuracy is measured after each epoch, and each patience looks at validation accuracy alone. The best epoch by test
accuracy (*oracle*) is no result: it bounds what any choice of the epoch could bring. `all` trains on the held-out tenth
as well, and takes the epoch that the same seed's validation documents chose; `cased` keeps upper case.

Writes shortfall.json, a row a training as it ends, and shortfall.md. Datasets come from the folder MPAD_DATA, vectors
from MPAD_VECTORS. Trainings that are in the file are not run again.
"""

import json
import math
import os
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks import results
from mpad import cross_validate, load_dataset
from mpad._experiments import paper
from mpad._experiments.protocol import make_cell, make_estimator
from mpad._experiments.provenance import commit, versions
from mpad._experiments.splits import Split, split
from mpad._training.stopping import EarlyStopping

FILE = results.HERE / "shortfall.json"
SETTINGS = {"trec": ("kim", "all", "cased"), "sst1": ("kim",), "sst2": ("kim",)}
PATIENCE = (10, 30, 200)
EPOCHS = 200
SEEDS = 3


def main() -> None:
    """Run what is missing of the datasets named, or of all; then write the table."""
    rows: list[dict[str, Any]] = json.loads(FILE.read_text())["rows"] if FILE.is_file() else []
    for dataset in sys.argv[1:] or SETTINGS:
        for seed in range(SEEDS):
            for setting in SETTINGS[dataset]:
                key = {"dataset": dataset, "setting": setting, "seed": seed}
                if not any(key.items() <= row.items() for row in rows):
                    rows.append({**key, **trained(dataset, setting, seed), "commit": commit(), "versions": versions()})
                    FILE.write_text(json.dumps({"rows": rows}, indent=1) + "\n")
                    print(dataset, setting, seed, kept(rows[-1], 30), flush=True)
    FILE.with_suffix(".md").write_text(table(rows))


def trained(dataset: str, setting: str, seed: int) -> dict[str, Any]:
    """Train for all epochs: validation accuracy and loss, and test accuracy, of each."""
    cell = make_cell(dataset, "mpad", tokenizer="kim-cased" if setting == "cased" else "kim")
    options = {"max_epochs": EPOCHS, "patience": EPOCHS, "random_state": seed, "device": "auto"}
    estimator = make_estimator(cell, os.environ["MPAD_VECTORS"], **options)
    corpus = split(load_dataset(dataset))
    part = corpus.splits[0]
    # All training documents: those that would choose the epoch are learnt from, too, so they choose nothing.
    parts = Split(part.training, part.training[:50], part.test) if setting == "all" else part
    (result,) = cross_validate(estimator, corpus.texts, corpus.labels, cv=[parts.rows])
    return {
        "validation": [round(report.validation_accuracy, 5) for report in result.reports],
        "validation_loss": [round(report.validation_loss, 5) for report in result.reports],
        "test": [round(float(report.watched_accuracy or 0), 5) for report in result.reports],
    }


def kept(row: dict[str, Any], patience: int) -> int:
    """The epoch, from 1, that this patience keeps."""
    stopping = EarlyStopping(patience)
    for epoch, (accuracy, loss) in enumerate(zip(row["validation"], row["validation_loss"], strict=True), 1):
        stopping.offer(epoch, accuracy, loss)
    return stopping.epoch


def tested(row: dict[str, Any], rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Test accuracy of a training by each way to choose its epoch."""
    if row["setting"] == "all":  # chosen by the training of the same seed that held documents out
        chooser = next(one for one in rows if one["setting"] == "kim" and same_run(one, row))
        return {"patience 30": row["test"][kept(chooser, 30) - 1]}
    by_patience = {f"patience {patience}": row["test"][kept(row, patience) - 1] for patience in PATIENCE}
    return {**by_patience, "oracle (no result)": max(row["test"])}


def same_run(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two trainings share dataset and seed."""
    return bool(one["dataset"] == other["dataset"] and one["seed"] == other["seed"])


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Means over seeds with their standard errors, beside what the paper printed."""
    names = [*[f"patience {patience}" for patience in PATIENCE], "oracle (no result)"]
    lines = [
        "<!-- written by python -m benchmarks.shortfall -->",
        "",
        "Test accuracy in percent, mean over seeds ± standard error; the authors' network, 200 epochs.",
        "",
        f"| dataset | trained on | seeds | {' | '.join(names)} | printed |",
        "|---|---|---|" + "---|" * (len(names) + 1),
    ]
    for dataset, settings in SETTINGS.items():
        for setting in settings:
            own = [row for row in rows if row["dataset"] == dataset and row["setting"] == setting]
            if own:
                cells = [tested(row, rows) for row in own]
                shown = [mean_and_error([cell[name] for cell in cells if name in cell]) for name in names]
                printed = paper.printed("mpad", dataset)
                said = {"kim": "nine tenths", "all": "all", "cased": "nine tenths, cased"}[setting]
                said = "its training part" if dataset != "trec" else said
                lines.append(f"| {dataset} | {said} | {len(own)} | {' | '.join(shown)} | {printed} |")
    return "\n".join(lines) + "\n"


def mean_and_error(values: Sequence[float]) -> str:
    """In percent."""
    if not values:
        return ""
    error = 100 * float(np.std(values, ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else float("nan")
    return f"{100 * float(np.mean(values)):.2f} ± {error:.2f}"


if __name__ == "__main__":
    main()
