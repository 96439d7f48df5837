"""`python -m benchmarks.accuracy.unlabeled [DATASET …]`: what texts without labels and names of classes bring.

Of each dataset's training part 8 and 32 documents per class are drawn twice; 2,000 others are the texts without
labels, 1,500 more the test. No test part is read. Writes unlabeled.json; datasets come from the folder MPAD_DATA.
"""

import json
import sys
from typing import Any

import numpy as np

from benchmarks import results
from benchmarks.accuracy.encoders import training_part
from mpad import MPADClassifier
from mpad.paper.experiments.provenance import versions

_NAMES = {
    "trec": {
        "ABBR": "abbreviation: what does it stand for",
        "DESC": "description, definition, reason, manner",
        "ENTY": "entity: animal, product, food, sport, thing",
        "HUM": "human: who, person, group",
        "LOC": "location: where, city, country",
        "NUM": "number: how many, date, money",
    },
    "polarity": {"pos": "a good, moving, enjoyable film", "neg": "a bad, dull, disappointing film"},
    "subjectivity": {"neg": "the opinion of a critic", "pos": "what happens in the plot"},
    "snippets": {},  # their labels are names already
}
_SIZES, _DRAWS, _UNLABELED, _TESTED = (8, 32), 2, 2_000, 1_500


def main() -> None:
    """Measure the datasets named, or all."""
    results.check_clean()
    rows: list[dict[str, Any]] = []
    for dataset in sys.argv[1:] or _NAMES:
        texts, labels = training_part(dataset)
        labels = labels.astype(str)
        classes = np.unique(labels)
        named = _NAMES[dataset] or {name: name.replace("-", " ") for name in classes.tolist()}
        described = {name: named[name] for name in classes.tolist() if name in named}
        if not described:
            sys.exit(f"{dataset}: expected labels among {', '.join(named)}, found {', '.join(classes)}")
        tested, further = texts[:_TESTED], texts[_TESTED : _TESTED + _UNLABELED]
        pool = np.arange(_TESTED + _UNLABELED, len(texts))
        for size in _SIZES:
            for draw in range(_DRAWS):
                order = np.random.default_rng(draw).permutation(pool)
                chosen = np.concatenate([order[labels[order] == name][:size] for name in classes])
                ways: dict[str, dict[str, Any]] = {
                    "labels alone": {},
                    "names": {"class_names": described},
                    "unlabeled": {"unlabeled": further},
                }
                for way, options in ways.items():
                    model = MPADClassifier(random_state=draw, device="cpu", verbose=False)
                    model.fit([texts[k] for k in chosen], labels[chosen], **options)
                    accuracy = 100 * float(model.score(tested, labels[:_TESTED]))
                    by = None if model.unlabeled_ is None else model.unlabeled_.labeled_by
                    row = {"dataset": dataset, "per_class": size, "draw": draw, "with": way, "labeled_by": by}
                    rows.append(row | {"accuracy": round(accuracy, 2), "commit": results.measured_commit()})
            recent = [row for row in rows if (row["dataset"], row["per_class"]) == (dataset, size)]
            means = {way: np.mean([row["accuracy"] for row in recent if row["with"] == way]) for way in ways}
            used = sum(row["labeled_by"] is not None for row in recent)
            shown = "  ".join(f"{way} {mean:.1f}" for way, mean in means.items())
            print(f"{dataset:<14}{size:>4} per class  {shown}  (used {used} of {_DRAWS})", flush=True)
        record = {"versions": versions(), "rows": rows}
        (results.HERE / "unlabeled.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
