"""Records of benchmarks.accuracy.faithfulness → docs/faithfulness.md, wholly."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t

Record = dict[str, Any]
RANDOM = "random order"
TIE = 0.01  # areas that differ by less are one
_METHODS = "gradients", "occlusion by word", "occlusion by occurrence", "occlusion", "attention"
_COMPARED = (
    ("gradients", "occlusion by word"),
    ("gradients", "occlusion by occurrence"),
    ("gradients", "occlusion"),
    ("occlusion by word", "occlusion by occurrence"),
    ("gradients", "attention"),
)
_ONE = "One dataset: nothing is said of others."
_HEADS = {"word": "Words", "occurrence": "Occurrences of words", "edge": "Pairs of words", "sentence": "Sentences"}
_SAID = {
    "word": "All occurrences of a word are taken out together.",
    "occurrence": "One occurrence at a time; methods that weigh words give each occurrence an even share of its word's "
    "weight.",
    "edge": "Edges are taken out of the graph, words stay; the network reads what is left, and the linear part has "
    "no potentials of these pairs.",
    "sentence": "All words of a sentence are taken out; datasets whose documents have several.",
}
_SETTINGS = {
    "best": "The default model",
    "clique": 'Its hierarchical variant (`variant="clique"`)',
    "paper": 'The paper\'s equations (`preset="paper"`, 15 epochs)',
}
_INTRO = """# How faithful explanations are

Written by `python -m benchmarks.accuracy.faithfulness` from benchmarks/faithfulness.jsonl, a line per model with its
seed, settings, versions and commit; nobody types a number here. What the methods are: [explanations](explanations.md).

Parts of a document are taken out in the order of their weights, the heaviest first, and the probability of the label
is averaged over the share of parts gone (deletion; lower is better); or they are put in, in that order (insertion;
higher is better). The *gain* is how much better both areas together are than those of random order (five orders) on
the same documents; 0 is no better than chance. Every method is judged by the same unit. Differences are paired: the
same documents, the same models.

Intervals are 95 %. Of a dataset: Student's t over documents, gains averaged over seeds, with the variance between
seeds added. Of the mean: Student's t over the datasets. Differences whose interval holds 0, or that are below {tie},
are ties. Models learn from at most {trained:,} documents, so they are weaker than those of [results](results.md).
"""
_PAIRS = """### What pairs of words carry

The decision is the label's lead over the runner-up, a difference of logits. *Of the linear part*: Σ|pairs| / (Σ|words|
+ Σ|pairs|), of what each adds to the lead there. *Of the lead*: what of the sum of leads goes when all edges are taken
out of the graphs; of the whole model, and of its network alone. Below 0, labels lead by more without edges.
"""


class Estimate(NamedTuple):
    """A mean, and half of its 95 % interval."""

    mean: float
    half: float

    def __str__(self) -> str:
        return f"{round(self.mean, 3) + 0.0:.3f} ± {self.half:.3f}"  # never -0.000

    @property
    def clear(self) -> bool:
        """Whether it differs from 0 by more than chance, and by enough to matter."""
        return abs(self.mean) > self.half and abs(self.mean) >= TIE


def over_documents(values: NDArray[np.float64]) -> Estimate:
    """Of (seeds, documents): the mean, with the variance over documents and that between seeds."""
    seeds, n = values.shape
    variance = values.mean(0).var(ddof=1) / n + (values.mean(1).var(ddof=1) / seeds if seeds > 1 else 0.0)
    return Estimate(float(values.mean()), float(t.ppf(0.975, n - 1) * variance**0.5))


def over_datasets(means: Sequence[float]) -> Estimate:
    """The mean over datasets, each of which counts once."""
    n = len(means)
    half = float(t.ppf(0.975, n - 1) * np.std(means, ddof=1) / n**0.5) if n > 1 else float("inf")
    return Estimate(float(np.mean(means)), half)


def gains(records: Sequence[Record], unit: str) -> dict[str, dict[str, NDArray[np.float64]]]:
    """Gains of each method on each dataset: (seeds, documents)."""
    result: dict[str, dict[str, list[list[float]]]] = defaultdict(lambda: defaultdict(list))
    for record in sorted(records, key=lambda record: record["seed"]):
        for method in _METHODS:
            if method in record["units"].get(unit, {}):
                result[record["dataset"]][method].append(record["units"][unit][method]["gains"])
    return {name: {method: np.array(own) for method, own in by.items()} for name, by in result.items()}


def difference(by: dict[str, dict[str, NDArray[np.float64]]], first: str, second: str) -> Estimate:
    """The first method's gain less the second's, over datasets."""
    return over_datasets([float((one[first] - one[second]).mean()) for one in by.values()])


def page(records: Sequence[Record]) -> str:
    """The whole page."""
    if not records:
        return _INTRO.format(tie=TIE, trained=0)
    parts = [_INTRO.format(tie=TIE, trained=max(record["trained"] for record in records))]
    for setting, title in _SETTINGS.items():
        own = [record for record in records if record["setting"] == setting]
        if own:
            parts += [f"## {title}\n", _models(own), *(_section(own, unit) for unit in _HEADS), _pairs(own), _cost(own)]
    return "\n".join(part for part in parts if part)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def _names(records: Sequence[Record]) -> list[str]:
    return list(dict.fromkeys(record["dataset"] for record in records))


def _models(records: Sequence[Record]) -> str:
    rows = []
    for name in _names(records):
        own = [record for record in records if record["dataset"] == name]
        accuracy = f"{100 * np.mean([record['accuracy'] for record in own]):.1f}"
        rows.append([name, f"{own[0]['trained']:,}", str(own[0]["tested"]), str(len(own)), accuracy])
    return _table(["dataset", "trained on", "explained", "seeds", "test accuracy, %"], rows)


def _section(records: Sequence[Record], unit: str) -> str:
    """A table of gains, one of paired differences, and what follows."""
    by = gains(records, unit)
    if not by:
        return ""
    methods = [method for method in _METHODS if any(method in own for own in by.values())]
    pairs = [pair for pair in _COMPARED if set(pair) <= set(methods)]
    rows = [[name, *(str(over_documents(own[method])) for method in methods)] for name, own in by.items()]
    paired = [[name, *(str(over_documents(own[a] - own[b])) for a, b in pairs)] for name, own in by.items()]
    if len(by) > 1:
        means = [over_datasets([float(own[method].mean()) for own in by.values()]) for method in methods]
        rows.append(["**mean**", *(f"**{mean}**" for mean in means)])
        paired.append(["**mean**", *(f"**{difference(by, *pair)}**" for pair in pairs)])
    areas = "; ".join(f"{name} {_areas(records, unit, name)}" for name in (*methods, RANDOM))
    verdicts = " ".join(_verdict(difference(by, *pair), *pair) for pair in pairs) if len(by) > 1 else _ONE
    return "\n".join(
        [
            f"### {_HEADS[unit]}\n",
            f"{_SAID[unit]}\n",
            _table(["gain over random order", *methods], rows),
            _table(["paired difference of gains", *(f"{a} less {b}" for a, b in pairs)], paired),
            f"{verdicts}\n",
            f"Deletion / insertion, means over datasets: {areas}.\n",
        ]
    )


def _verdict(between: Estimate, first: str, second: str) -> str:
    if not between.clear:
        return f"{first.capitalize()} and {second}: a tie."
    better, worse = (first, second) if between.mean > 0 else (second, first)
    return f"{better.capitalize()} before {worse}, by {abs(between.mean):.3f}."


def _areas(records: Sequence[Record], unit: str, method: str) -> str:
    there = [record["units"][unit][method] for record in records if method in record["units"].get(unit, {})]
    return f"{np.mean([one['deletion'] for one in there]):.3f} / {np.mean([one['insertion'] for one in there]):.3f}"


def _pairs(records: Sequence[Record]) -> str:
    """How much of the decisions pairs carry."""
    rows = []
    for name in _names(records):
        own = [record["pairs"] for record in records if record["dataset"] == name]
        linear = [one["linear"] for one in own if one["linear"] is not None]
        shares = [float(np.mean([one[key] for one in own])) for key in ("model", "network", "changed")]
        cells = [f"{100 * np.mean(linear):.0f}" if linear else "", *[f"{100 * share:.0f}" for share in shares]]
        rows.append([name, str(own[0]["documents"]), *cells])
    head = ["%", "documents", "of the linear part", "of the lead", "of the network's lead", "labels that change"]
    return _PAIRS + "\n" + _table(head, rows)


def _cost(records: Sequence[Record]) -> str:
    methods = [method for method in _METHODS if method in records[0]["units"]["word"]]
    rows = []
    for name in _names(records):
        own = [record["units"]["word"] for record in records if record["dataset"] == name]
        rows.append([name, *(f"{1000 * np.mean([one[method]['seconds'] for one in own]):.0f}" for method in methods)])
    return "\n".join(["### Milliseconds of CPU time a document\n", _table(["dataset", *methods], rows)])
