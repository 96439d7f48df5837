"""`python -m benchmarks.accuracy.held_out_gap`: compare the held-out accuracy of a fit with new documents.

Each run draws 2,000 training documents and up to 3,000 test documents from a dataset without copies, fits the default
model, and records the printed accuracy and the test accuracy. Three settings:

- plain: as drawn;
- repeated: every training document three times;
- validation: a fifth of the training documents is passed as `validation`; afterwards the model is scored on it again.

Writes held_out_gap.json: one row per run, with its seed and commit. Runs of other commits are kept, so that a commit
can be compared with an earlier one. Datasets come from the folder MPAD_DATA.
"""

import json
from typing import Any

import numpy as np

from benchmarks import results
from mpad import MPADClassifier, load_dataset
from mpad.paper.experiments.provenance import versions

_DATASETS = "trec", "polarity", "subjectivity", "mpqa", "snippets"
_SETTINGS = "plain", "repeated", "validation"
_SEEDS = range(5)
_TRAIN, _TEST = 2_000, 3_000
_FILE = results.HERE / "held_out_gap.json"


def main() -> None:
    """Run all settings and print the table."""
    results.check_clean()
    commit = results.measured_commit()
    rows = [row for row in _rows() if row["commit"] != commit]
    for name in _DATASETS:
        for seed in _SEEDS:
            for setting in _SETTINGS:
                rows.append({"commit": commit, **_run(name, seed, setting)})
                _FILE.write_text(json.dumps({"versions": versions(), "rows": rows}, indent=1) + "\n", encoding="utf-8")
    print(table(rows))


def table(rows: list[dict[str, Any]]) -> str:
    """Return the means over datasets and seeds as Markdown, with standard errors of the difference."""
    lines = [
        "| commit | training documents | printed | scored again | test | printed − test |",
        "| --- |" + " --- |" * 5,
    ]
    for commit in dict.fromkeys(row["commit"] for row in rows):
        for setting in _SETTINGS:
            own = [row for row in rows if (row["commit"], row["setting"]) == (commit, setting)]
            gap = np.array([row["printed"] - row["test"] for row in own])
            again = [row["again"] for row in own if row["again"] is not None]
            cells = [
                f"{np.mean([row['printed'] for row in own]):.1f}",
                f"{np.mean(again):.1f}" if again else "",
                f"{np.mean([row['test'] for row in own]):.1f}",
                f"{gap.mean():+.2f} ± {gap.std(ddof=1) / len(gap) ** 0.5:.2f}",
            ]
            lines.append(f"| {commit} | {setting} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _rows() -> list[dict[str, Any]]:
    return json.loads(_FILE.read_text(encoding="utf-8"))["rows"] if _FILE.is_file() else []


def _run(name: str, seed: int, setting: str) -> dict[str, Any]:
    parts = load_dataset(name).parts.values()
    pairs = {
        " ".join(text.casefold().split()): (text, label)
        for part in parts
        for text, label in zip(part.texts, part.labels or [], strict=True)
    }
    order = np.random.default_rng(seed).permutation(len(pairs))
    texts, labels = (np.array(column, object) for column in zip(*pairs.values(), strict=True))
    train, test = order[:_TRAIN], order[_TRAIN : _TRAIN + _TEST]
    held = train[:0]
    if setting == "repeated":
        train = np.tile(train, 3)
    elif setting == "validation":
        held, train = train[: _TRAIN // 5], train[_TRAIN // 5 :]
    known = np.isin(labels[held], labels[train])  # a class may be too small to be in both
    held = held[known]
    own = (list(texts[held]), list(labels[held])) if len(held) else None
    model = MPADClassifier(random_state=seed, device="cpu")
    model.fit(list(texts[train]), list(labels[train]), validation=own)
    return {
        "dataset": name,
        "seed": seed,
        "setting": setting,
        "printed": 100 * model.held_out_accuracy_["mpad"],
        "again": None if own is None else 100 * model.score(*own),
        "test": 100 * model.score(list(texts[test]), list(labels[test])),
        "train": len(train),
        "tested": len(test),
    }


if __name__ == "__main__":
    main()
