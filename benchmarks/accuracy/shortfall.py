"""`python -m benchmarks.accuracy.shortfall [DATASET …]`: what the distance to the paper's numbers is made of.

One long training with the authors' network tells what every patience would have kept: test accuracy is measured after
each epoch, and each patience looks at validation accuracy alone. The best epoch by test accuracy (*oracle*) is no
result: it bounds what any choice of the epoch could bring. `all` learns from the held-out tenth as well, and takes the
epoch that the same seed's validation documents chose; `cased` keeps upper case.

What the vectors bring is told on TREC by worse ones, since better ones are not to be had: estimated rows are left out,
or genuine rows, half of them or all, are made as uncertain as the estimates are (their cosine to the genuine ones on
held-out words). Upper-case words, of which the file has none, can take the row of the same word in lower case.

Writes shortfall.json, rows as their seeds have trained together, and shortfall.md. Datasets come from the folder
MPAD_DATA, vectors from MPAD_VECTORS. What is in the file is not run again.
"""

import json
import math
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import results
from mpad import cross_validate, load_dataset
from mpad.estimator.classifier import TextClassifier
from mpad.paper.datasets.catalogue import CATALOGUE
from mpad.paper.experiments import paper
from mpad.paper.experiments.protocol import make_cell, make_estimator
from mpad.paper.experiments.provenance import device_name, versions
from mpad.paper.experiments.splits import Split, SplitCorpus, split
from mpad.training.task import EarlyStopping

FILE = results.HERE / "shortfall.json"
VECTORS = "no estimates", "half uncertain", "uncertain", "cased, as lower case"
SETTINGS = {
    "trec": ("kim", "all", "cased", "all, cased", *VECTORS),
    "sst1": ("kim",),
    "sst2": ("kim",),
    "imdb": ("kim",),
}
SAID = {"kim": "nine tenths", "all": "all", "cased": "nine tenths, cased", "all, cased": "all, cased"}
SAID |= {
    "no estimates": "nine tenths; rows that are estimates left out",
    "half uncertain": "nine tenths; half of the genuine rows as uncertain as estimates",
    "uncertain": "nine tenths; all genuine rows as uncertain as estimates",
    "cased, as lower case": "nine tenths, cased; upper-case words with the rows of lower-case ones",
}
SHARES = {"uncertain": 0.0, "half uncertain": 0.324, "kim": 0.648}  # of TREC's 8,764 words with a genuine vector
PAPER_SHARE = 0.95  # 9,125 of 9,593, by its Table 1
COSINE = 0.7  # of estimates and genuine rows, by the README of the file of vectors
PATIENCE = (10, 30, 200)
EPOCHS = {"trec": 200, "sst1": 200, "sst2": 200, "imdb": 100}
SEEDS = {"trec": 20, "sst1": 5, "sst2": 5, "imdb": 3}
Row = dict[str, Any]


def main() -> None:
    """Run what is missing of the datasets named, or of all; then write the table."""
    rows: list[Row] = json.loads(FILE.read_text())["rows"] if FILE.is_file() else []
    for dataset in sys.argv[1:] or SETTINGS:
        for setting in SETTINGS[dataset]:
            if not any(row["dataset"] == dataset and row["setting"] == setting for row in rows):
                rows += trained(dataset, setting)
                FILE.write_text(json.dumps({"rows": rows}, indent=1) + "\n")
                print(dataset, setting, flush=True)
    FILE.with_suffix(".md").write_text(table(rows))


def trained(dataset: str, setting: str) -> list[Row]:
    """Train for all epochs: validation accuracy and loss, and test accuracy, of each; a row a seed."""
    cell = make_cell(dataset, "mpad", tokenizer="kim-cased" if "cased" in setting else "kim")
    options = {"max_epochs": EPOCHS[dataset], "patience": EPOCHS[dataset], "device": "auto"}
    corpus = split(load_dataset(dataset))
    part = corpus.splits[0]
    with tempfile.TemporaryDirectory() as folder:
        path = other_vectors(Path(os.environ["MPAD_VECTORS"]), setting, Path(folder))
        made = [make_estimator(cell, str(path), **options, random_state=seed) for seed in range(SEEDS[dataset])]
        return _trained(dataset, setting, made, corpus, part)


def other_vectors(path: Path, setting: str, folder: Path) -> Path:
    """The file of vectors that a setting asks for: this one, or one that is made of it."""
    if setting not in VECTORS:
        return path
    with np.load(path) as file:
        words, genuine = file["words"], file["genuine"]
        rows = file["rows"].astype(np.float32) * file["scale"][:, None]
    generator = np.random.default_rng(0)
    if setting == "no estimates":
        words, rows = words[genuine], rows[genuine]
    elif setting == "cased, as lower case":
        ways = [words, np.char.capitalize(words), np.char.upper(words)]
        words, first = np.unique(np.concatenate(ways), return_index=True)
        rows = rows[first % len(rows)]
    else:
        chosen = np.flatnonzero(genuine & (generator.random(len(words)) < (0.5 if setting.startswith("half") else 1)))
        noise = generator.normal(size=(len(chosen), rows.shape[1])).astype(np.float32)
        length = np.linalg.norm(rows[chosen], axis=1, keepdims=True)
        noise *= length / np.linalg.norm(noise, axis=1, keepdims=True)
        rows[chosen] = COSINE * rows[chosen] + np.sqrt(1 - COSINE**2) * noise
    np.savez(folder / "vectors.npz", words=words, vectors=rows)
    return folder / "vectors.npz"


def _trained(dataset: str, setting: str, made: list[TextClassifier], corpus: SplitCorpus, part: Split) -> list[Row]:
    # All training documents: those that would choose the epoch are learnt from, too, so they choose nothing.
    parts = Split(part.training, part.training[:50], part.test) if setting.startswith("all") else part
    origin = {"commit": results.measured_commit(), "versions": versions(), "device": device_name("auto")}
    return [
        {
            "dataset": dataset,
            "setting": setting,
            "seed": result.setting,
            "validation": [round(report.validation_accuracy, 5) for report in result.reports],
            "validation_loss": [round(report.validation_loss, 5) for report in result.reports],
            "test": [round(float(report.watched_accuracy or 0), 5) for report in result.reports],
            "seconds": round(result.seconds, 1),
            **origin,
        }
        for result in cross_validate(made, corpus.texts, corpus.labels, cv=[parts.rows])
    ]


def kept(row: Row, patience: int) -> int:
    """The epoch, from 1, that this patience keeps."""
    stopping = EarlyStopping(patience)
    for epoch, (accuracy, loss) in enumerate(zip(row["validation"], row["validation_loss"], strict=True), 1):
        stopping.offer(epoch, accuracy, loss)
    return stopping.epoch


def tested(row: Row, rows: Sequence[Row]) -> dict[str, float]:
    """Test accuracy of a training by each way to choose its epoch."""
    chooser = row
    if row["setting"].startswith("all"):  # chosen by the training of the same seed that held documents out
        held = {"all": "kim", "all, cased": "cased"}[row["setting"]]
        same = [one for one in rows if one["setting"] == held and one["seed"] == row["seed"]]
        chooser = next(one for one in same if one["dataset"] == row["dataset"])
    by_patience = {f"patience {patience}": row["test"][kept(chooser, patience) - 1] for patience in PATIENCE}
    return {**by_patience, "oracle (no result)": max(row["test"])}


def table(rows: Sequence[Row]) -> str:
    """Means over seeds with their standard errors, beside what the paper printed."""
    names = [*[f"patience {patience}" for patience in PATIENCE], "oracle (no result)"]
    lines = [
        "<!-- written by python -m benchmarks.accuracy.shortfall -->",
        "",
        "Test accuracy in percent, mean over seeds ± standard error; preset `authors`, variant `mpad`.",
        "Validation is that of the epochs which patience 10, 30 and 200 keep.",
        "",
        f"| dataset | learns from | seeds | epochs | validation | {' | '.join(names)} | printed |",
        "|---|---|---|---|---|" + "---|" * (len(names) + 1),
    ]
    for dataset, settings in SETTINGS.items():
        for setting in settings:
            own = [row for row in rows if row["dataset"] == dataset and row["setting"] == setting]
            if own:
                cells = [tested(row, rows) for row in own]
                shown = [mean_and_error([cell[name] for cell in cells]) for name in names]
                by = [np.mean([row["validation"][kept(row, patience) - 1] for row in own]) for patience in PATIENCE]
                validation = ", ".join(f"{100 * value:.2f}" for value in by) if "all" not in setting else ""
                said = "phrases" if dataset.startswith("sst") else SAID[setting]
                facts = [CATALOGUE[dataset].title, said, str(len(own)), str(len(own[0]["test"])), validation]
                lines.append(f"| {' | '.join([*facts, *shown, str(paper.printed('mpad', dataset))])} |")
    return "\n".join([*lines, "", *drawn_on(rows)]) + "\n"


def drawn_on(rows: Sequence[Row]) -> list[str]:
    """What a line through TREC's accuracies by share of genuine vectors says of the paper's share, with its error."""
    own = [row for row in rows if row["dataset"] == "trec" and row["setting"] in SHARES]
    if {row["setting"] for row in own} < set(SHARES):
        return []
    x = np.array([SHARES[row["setting"]] for row in own])
    found, missing = [tested(row, rows) for row in own], PAPER_SHARE - SHARES["kim"]
    lines = [
        f"A line through TREC's accuracies with {', '.join(map(str, SHARES.values()))} of its words' vectors genuine:",
        "",
        f"| TREC, drawn on | at {PAPER_SHARE} | more than here |",
        "|---|---|---|",
    ]
    for name in found[0]:
        y = np.array([100 * each[name] for each in found])
        (slope, start), spread = np.polyfit(x, y, 1, cov="unscaled")
        error = math.sqrt(float(np.sum((y - start - slope * x) ** 2)) / (len(y) - 2))
        at = np.array([PAPER_SHARE, 1.0])
        there = f"{start + slope * PAPER_SHARE:.2f} ± {error * math.sqrt(float(at @ spread @ at)):.2f}"
        more = f"{missing * slope:.2f} ± {missing * error * math.sqrt(float(spread[0, 0])):.2f}"
        lines.append(f"| {name}, drawn on | {there} | {more} |")
    return lines


def mean_and_error(values: Sequence[float]) -> str:
    """In percent."""
    error = 100 * float(np.std(values, ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else float("nan")
    return f"{100 * float(np.mean(values)):.2f} ± {error:.2f}"


if __name__ == "__main__":
    main()
