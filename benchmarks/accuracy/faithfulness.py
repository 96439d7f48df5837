"""`python -m benchmarks.accuracy.faithfulness [SETTING …] [DATASET …] [SEED …]`: how far explanations can be trusted.

Fits a model on at most 1,200 training documents of each dataset and measures its explanations on test documents:
deletion and insertion (mpad.explain.faithfulness) of every method by word, occurrence, edge and sentence, and how much
of the decisions pairs of words carry (mpad.explain.pairs). Settings are `best` (the default model), `clique` (its
hierarchical variant, on datasets with several sentences a document) and `paper`. A line of faithfulness.jsonl is kept
for each model as soon as it is measured, and a line that is there is not run again. Then docs/faithfulness.md is
written from all lines; with --no-run that alone. Datasets come from the folder MPAD_DATA; those that are not there are
left out.
"""

import json
import os
import sys
import time
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import results
from benchmarks.accuracy.faithfulness_page import page
from mpad import MPADClassifier, load_dataset
from mpad.errors import MPADError
from mpad.explain.document import EDGE, SENTENCE, UNITS
from mpad.explain.faithfulness import measure
from mpad.explain.pairs import pair_share
from mpad.inference import Pipeline
from mpad.paper.experiments.provenance import device_name, digest, versions
from mpad.paper.experiments.splits import split
from mpad.text.distilled import auto_source

FILE = results.HERE / "faithfulness.jsonl"
PAGE = results.HERE.parent / "docs" / "faithfulness.md"
DATASETS = "docstrings", "trec", "polarity", "snippets", "reuters", "subjectivity"
SETTINGS: dict[str, dict[str, Any]] = {
    "best": {},
    "clique": {"variant": "clique"},
    "paper": {"preset": "paper", "max_epochs": 15},
}
_SEVERAL_SENTENCES = ("docstrings",)
_SEEDS, _TRAINED, _TESTED, _TESTED_LONG, _PAIRS = (0, 1, 2), 1_200, 60, 30, 500
_LONG = "docstrings", "reuters"
_METHODS = "gradients", "occlusion by word", "occlusion by occurrence", "attention"
Record = dict[str, Any]


def main() -> None:
    """Run what is asked for and not there yet, and write the page."""
    known, chosen = read(FILE), sys.argv[1:]
    if "--no-run" not in chosen:
        origin = {"versions": versions(), "commit": results.measured_commit(), "device": device_name("cpu")}
        for setting, dataset, seed in _wanted(chosen):
            if (setting, dataset, seed) in known:
                continue
            try:
                measured = _run(setting, dataset, seed)
            except MPADError as error:
                print(f"{dataset}: left out: {error}", file=sys.stderr)
                continue
            record = {"dataset": dataset, "setting": setting, "seed": seed, **measured, **origin}
            _append(record)
            known[setting, dataset, seed] = record
            gains = {name: round(float(np.mean(one["gains"])), 3) for name, one in record["units"]["word"].items()}
            print(
                dataset, setting, seed, gains, f"fit {record['fit_seconds']} s, all {record['seconds']} s", flush=True
            )
    PAGE.write_text(page(list(known.values())), encoding="utf-8")
    print(f"wrote {PAGE}")


def read(file: Path) -> dict[tuple[str, str, int], Record]:
    """The records that are there, by setting, dataset and seed; a line that was cut is left out, and run again."""
    records = {}
    for line in file.read_text(encoding="utf-8").splitlines() if file.is_file() else ():
        try:
            record = json.loads(line)
        except json.JSONDecodeError:
            continue
        records[record["setting"], record["dataset"], record["seed"]] = record
    return records


def _wanted(chosen: list[str]) -> list[tuple[str, str, int]]:
    for name in chosen:
        if name not in (*SETTINGS, *DATASETS) and not name.isdigit():
            sys.exit(
                f"expected settings ({', '.join(SETTINGS)}), datasets ({', '.join(DATASETS)}), seeds; not '{name}'"
            )
    settings = [name for name in chosen if name in SETTINGS] or list(SETTINGS)
    datasets = [name for name in chosen if name in DATASETS] or list(DATASETS)
    seeds = [int(name) for name in chosen if name.isdigit()] or list(_SEEDS)
    return [
        (setting, dataset, seed)
        for setting in settings
        for seed in seeds
        for dataset in datasets
        if setting != "clique" or dataset in _SEVERAL_SENTENCES
    ]


def _run(setting: str, dataset: str, seed: int) -> Record:
    """Fit and measure one model; documents are the same for all seeds."""
    start = time.perf_counter()
    corpus = split(load_dataset(dataset))
    first, labels = corpus.splits[0], np.array(corpus.labels)
    trained = _draw(np.concatenate(first.rows[:-1]), _TRAINED)
    test = _draw(first.test, _PAIRS)
    texts = [corpus.texts[k] for k in test]
    model = MPADClassifier(random_state=seed, device="cpu", **SETTINGS[setting])
    model.fit([corpus.texts[k] for k in trained], labels[trained])
    fitted = time.perf_counter() - start
    fitted_model = model.model_
    explained = texts[: _TESTED_LONG if dataset in _LONG else _TESTED]
    units = [unit for unit in UNITS if unit != SENTENCE or dataset in _SEVERAL_SENTENCES]
    return {
        "trained": len(trained),
        "tested": len(explained),
        "data": digest(corpus.texts, corpus.labels),
        "vectors": "distilled from MiniLM" if auto_source() else "learnt",
        "config": {name: value for name, value in model.get_params().items() if name not in ("device", "random_state")},
        "accuracy": round(float(model.score(texts, labels[test])), 4),
        "answers_by": model.answers_by_,
        "units": _measured(fitted_model, explained, units),
        "pairs": {name: value and round(value, 4) for name, value in asdict(pair_share(fitted_model, texts)).items()},
        "fit_seconds": round(fitted, 1),
        "seconds": round(time.perf_counter() - start, 1),
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _measured(model: Pipeline, texts: list[str], units: list[str]) -> dict[str, dict[str, Any]]:
    """What each unit and method came to; edges and sentences are the same whatever occlusion takes for a word."""
    kept: dict[str, dict[str, Any]] = {unit: {} for unit in units}
    for one in measure(model, texts, _METHODS, units):
        name = one.method
        if one.unit in (EDGE, SENTENCE):
            if name == "occlusion by occurrence":
                continue
            name = name.removesuffix(" by word")
        kept[one.unit][name] = {
            "deletion": round(one.deletion, 4),
            "insertion": round(one.insertion, 4),
            "seconds": round(one.seconds, 4),
            "gains": [round(gain, 3) for gain in one.gains],
        }
    return kept


def _draw(rows: Any, most: int) -> Any:
    return np.random.default_rng(0).permutation(rows)[:most]


def _append(record: Record) -> None:
    with FILE.open("a", encoding="utf-8") as out:
        out.write(json.dumps(record) + "\n")
        out.flush()
        os.fsync(out.fileno())


if __name__ == "__main__":
    main()
