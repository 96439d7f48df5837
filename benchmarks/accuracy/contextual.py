"""`python -m benchmarks.accuracy.contextual [DATASET …]`: transformer features compared with word vectors.

Every model learns from the same documents (at most 2,000, drawn with each of two seeds, of the training part or of the
first of ten folds) and is tested on the same ones (at most 500 of the test part). Nothing is chosen by the test part:
settings are the defaults. Writes contextual.json, a row a dataset, seed and model, each as soon as it is there;
datasets come from the folder MPAD_DATA. CPU seconds are of the fit and of 200 answers, without
a cache of states.
"""

import json
import shutil
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import results
from mpad import MPADClassifier, load_dataset
from mpad.errors import MPADError
from mpad.files.cache import cache_folder
from mpad.paper import zoo
from mpad.paper.experiments.provenance import versions
from mpad.paper.experiments.splits import split

_DATASETS = "trec", "polarity", "subjectivity"
_SEEDS, _LEARNT, _TESTED, _ANSWERED = (0, 1), 2_000, 500, 200
Texts = list[str]
_MODELS: dict[str, Callable[[int], Any]] = {
    "tfidf-svm": lambda seed: zoo.make("tfidf-svm"),
    "minilm-lr": lambda seed: zoo.make("minilm-lr"),
    "mpad": lambda seed: MPADClassifier(random_state=seed, device="cpu", verbose=False),
    "mpad, features=minilm": lambda seed: MPADClassifier(
        features="minilm", random_state=seed, device="cpu", verbose=False
    ),
}


def main() -> None:
    """Run the datasets named, or all three; rows that are in the file already are not run again."""
    file = results.HERE / "contextual.json"
    rows: list[dict[str, Any]] = json.loads(file.read_text())["rows"] if file.is_file() else []
    for name in sys.argv[1:] or _DATASETS:
        try:
            texts, labels, tested, truth = _parts(name)
        except MPADError as error:
            print(f"{name}: left out: {error}", file=sys.stderr)
            continue
        for seed in _SEEDS:
            drawn = np.sort(np.random.default_rng(seed).permutation(len(texts))[:_LEARNT])
            for model, make in _MODELS.items():
                key = {"dataset": name, "seed": seed, "model": model}
                if any(key.items() <= row.items() for row in rows):
                    continue
                shutil.rmtree(cache_folder() / "states", ignore_errors=True)  # seconds are those of a first fit
                facts = _run(make(seed), [texts[k] for k in drawn], labels[drawn], tested, truth)
                rows.append({**key, **facts, "commit": results.measured_commit()})
                print(json.dumps(rows[-1]), flush=True)
                record = {"versions": versions(), "rows": rows}
                file.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(table(rows))


def _run(
    model: Any, texts: Texts, labels: NDArray[Any], tested: Texts, truth: NDArray[Any]
) -> dict[str, float | int | dict[str, float]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.process_time()
        model.fit(texts, labels)
        fitted = time.process_time()
        first = model.predict(tested[:_ANSWERED])
        answered = time.process_time()
        said = np.concatenate([first, model.predict(tested[_ANSWERED:])])
    return {
        "documents": len(texts),
        "tested": len(tested),
        "accuracy": round(100 * float(np.mean(said == truth)), 2),
        "held_out": {name: round(100 * value, 1) for name, value in getattr(model, "held_out_accuracy_", {}).items()},
        "fit_cpu_seconds": round(fitted - start, 1),
        "answer_cpu_seconds": round(answered - fitted, 3),
    }


def _parts(name: str) -> tuple[Texts, NDArray[Any], Texts, NDArray[Any]]:
    """Training texts and labels, test texts and labels, of the latter at most 500."""
    corpus = split(load_dataset(name))
    first, labels = corpus.splits[0], np.array(corpus.labels)
    learnt = np.concatenate(first.rows[:-1])
    test = np.random.default_rng(0).permutation(first.test)[:_TESTED]
    return [corpus.texts[k] for k in learnt], labels[learnt], [corpus.texts[k] for k in test], labels[test]


def table(rows: list[dict[str, Any]]) -> str:
    """Means over seeds, as Markdown."""
    names = list(dict.fromkeys(row["dataset"] for row in rows))
    lines = ["| accuracy, % | " + " | ".join(names) + " | fit, CPU s | 200 answers, CPU s |"]
    lines.append("| --- |" + " --- |" * (len(names) + 2))
    for model in _MODELS:
        own = [row for row in rows if row["model"] == model]
        each = [np.mean([row["accuracy"] for row in own if row["dataset"] == name]) for name in names]
        fit, answer = (
            np.mean([row[what] for row in own if row["seed"] == 0])
            for what in ("fit_cpu_seconds", "answer_cpu_seconds")
        )  # the encoder of minilm-lr remembers what it has read
        lines.append(f"| {model} | " + " | ".join(f"{x:.1f}" for x in each) + f" | {fit:.0f} | {answer:.2f} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
