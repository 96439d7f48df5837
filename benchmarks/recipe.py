"""`python -m benchmarks.recipe [--datasets …] [--seeds …] [--ideas …]`: ideas beside the default, on validation data.

Of each dataset's training part (of the first fold's, where there are folds) some documents are drawn to fit and others
to look at, anew for every seed; test parts are never read. Every idea is compared with the default on the same
documents. What an idea leaves alone, network or linear part, it shares with the default, which is that of before the
search: "letters of words" has become part of it since. Writes recipe.json, a row for each dataset, seed and idea; rows
that are there are not run again. Datasets come from the folder MPAD_DATA.
"""

import argparse
import json
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from copy import copy
from fcntl import LOCK_EX, flock
from pathlib import Path
from tempfile import gettempdir
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from benchmarks import recipe_networks as networks
from benchmarks import results
from mpad import MPADClassifier, load_dataset
from mpad.estimator import untrained
from mpad.estimator.members import TrainingData, held_out_logits
from mpad.estimator.untrained import untrained_network
from mpad.files.atomic import write_file
from mpad.linear.features import Features
from mpad.linear.fit import Examples, Stack, _cross_fitted_scores, held_out_stack, make_potentials
from mpad.linear.mixture import HeldOutFit, join_parts
from mpad.models.mpad import MPAD
from mpad.paper.experiments.provenance import versions
from mpad.paper.experiments.splits import split
from mpad.pipeline.document_model import DocumentModel
from mpad.text.vectors import WordVectors, make_vectors
from mpad.text.vocabulary import learn_vocabulary
from mpad.training import loop
from mpad.training.examples import make_examples
from mpad.training.loop import train
from mpad.training.stopping import BestWeights
from mpad.training.task import Task

_DATASETS = "docstrings", "trec", "polarity", "subjectivity", "mpqa", "snippets", "reuters"
_FITTED, _LONG = 2_000, {"docstrings": 1_200, "reuters": 1_200}  # documents to fit, of long ones fewer
_LOOKED_AT = 2_000  # others of the training part, as far as there are
_CASED = "docstrings", "trec"  # the only ones of these that have capitals
_AVERAGED = 5  # epochs whose weights are averaged
_CAPITALS = 4.0  # what says that a word has them, in standard deviations of its vector
_FILE = results.HERE / "recipe.json"
Floats = NDArray[np.floating]


class Idea(NamedTuple):
    """What is changed of the default."""

    network: type[MPAD] = MPAD
    window: int = 2
    letters: bool = False
    refitted: bool = False
    cased: bool = False
    averaged: bool = False


IDEAS = {
    "default": Idea(),
    "refit on all documents": Idea(refitted=True),
    "letters of words": Idea(letters=True),
    "word dropout 0.1": Idea(networks.WordDropout),
    "word dropout 0.2": Idea(networks.MoreWordDropout),
    "edge dropout 0.2": Idea(networks.EdgeDropout),
    "max and mean": Idea(networks.MaxAndMean),
    "two directions": Idea(networks.BothDirections),
    "four heads": Idea(networks.FourHeads),
    "case": Idea(cased=True),
    "window 3": Idea(window=3),
    "averaged weights": Idea(averaged=True),
}


# Rows of versions that are not here: n-grams of all words of a document, beside them in the SVM; the SVM's features
# scaled by naive Bayes, beside letters of words.
_EARLIER = ("character n-grams", "naive Bayes")


class AveragedWeights(BestWeights):
    """Keeps the mean of the weights after each of the last epochs, instead of the last ones."""

    def __init__(self, network: nn.Module, stacked: bool) -> None:
        super().__init__(network, stacked)
        self._last: deque[dict[str, Tensor]] = deque(maxlen=_AVERAGED)

    def keep(self, models: Sequence[int]) -> None:
        """Keep the present weights, among the last; counters of steps stay as they are."""
        self._last.append({name: value.detach().clone() for name, value in self._network.state_dict().items()})
        self._kept = {
            name: torch.stack([state[name] for state in self._last]).mean(0) if value.is_floating_point() else value
            for name, value in self._last[-1].items()
        }


class Searched(MPADClassifier):
    """The default with an idea; its linear part is fitted apart, so that several ideas can share one."""

    idea: Idea

    def _make_network(self, n_classes: int, n_words: int, vector_width: int) -> MPAD:
        network = super()._make_network(n_classes, n_words, vector_width)
        return network if self.idea.network is MPAD else self.idea.network(network.config)

    def _complete(
        self, model: Any, data: TrainingData, tasks: Sequence[Task], seed: int, train_on_held: bool = True
    ) -> Any:
        self.data, self.seed, self.task = data, seed, tasks[0]
        self.seen, self.held, self.held_logits = held_out_logits(model, tasks, data.packed)
        return model.with_network(self.task.network), HeldOutFit()

    def refitted(self) -> Any:
        """The same with a network that has learnt from held-out documents, too; all else stays."""
        again, model, task = copy(self), self.model_, self.task
        n_rows, width = model.network.vectors.shape
        network = untrained_network(self, len(model.labels), n_rows, width, self.seed)
        network.set_vectors(model.network.vectors)
        everything = make_examples(self.data.corpus, np.arange(len(self.data.targets)), self.data.targets)
        train([Task(network, everything, task.validation, task.config)])
        again.model_ = model.with_network(network)
        return again

    def parts(self, texts: Sequence[str]) -> Iterator[tuple[Sequence[str], Any]]:
        """Texts, and the same packed, as many together as have spare rows for their new words."""
        model = self.model_
        for part, corpus in model.vocabulary.encode_parts(texts, model.tokenizer):
            yield part, model.packed(corpus, part)


class Linear:
    """SVM and regression as `fit_linear_part` fits them; what they say of held-out documents and of others."""

    def __init__(self, model: Searched, letters: bool, looked: Sequence[str]) -> None:
        start, data, whole = time.process_time(), model.data, model.model_
        assert isinstance(whole, DocumentModel)
        order, places = np.concatenate([model.seen, model.held]), np.arange(len(model.seen), len(data.targets))
        vectors, words = whole.network.vectors.detach().numpy().astype(np.float16), whole.vocabulary.words
        vectors = vectors[:, :0] if whole.network.config.learn_vectors else vectors
        known = (len(words), vectors, words) if letters else (whole.vocabulary.seen, vectors)
        features = Features(data.packed, order, *known)
        parts = features.mean, data.targets[order], data.weights[order], len(model.classes_)
        examples = Examples(features.x, *parts)
        everything = np.arange(len(order))
        scores, svm = _cross_fitted_scores(examples, everything, model.seed)
        self.held = scores[places], held_out_stack(examples, scores, places)
        by_itself = np.eye(3)[:2]  # SVM, and regression
        stack = Stack(examples, scores, everything)
        potentials = [make_potentials(features, stack, counts, svm.weight, svm.intercept) for counts in by_itself]
        self.n_features, self.seconds = features.x.shape[1], time.process_time() - start
        packed = [part for _, part in model.parts(looked)]
        self.looked = [np.concatenate([each.logits(part) for part in packed]) for each in potentials]


def _cell(name: str, seed: int, ideas: Sequence[str]) -> None:
    """Ideas on one drawing of a dataset's documents, the default first."""
    torch.set_num_threads(1)
    texts, labels, looked, truth = _draw(name, seed)
    _fitted(
        Idea(), seed, texts[:100], labels[:100], looked[:1]
    )  # so that the default's time is not that of a first fit
    linear: dict[tuple[int, bool], Linear] = {}
    models: dict[Idea, Searched] = {}  # ideas that leave a network alone share one
    spent: dict[Idea, float] = {}
    by_default = np.zeros(len(truth), bool)
    for called in ["default", *[idea for idea in ideas if idea != "default"]]:
        idea, start = IDEAS[called], time.process_time()
        if idea.cased and name not in _CASED:
            continue
        trained = idea._replace(letters=False, refitted=False)
        if trained not in models:
            models[trained] = _fitted(trained, seed, texts, labels, looked)
            spent[trained], start = time.process_time() - start, time.process_time()
        model = models[trained].refitted() if idea.refitted else models[trained]
        seconds, key = spent[trained] + time.process_time() - start, (idea.window, idea.letters)
        if key not in linear:
            linear[key] = Linear(model, idea.letters, looked)
        part = linear[key]
        joined = join_parts([*part.held, model.held_logits], model.data.targets[model.held])
        network = np.concatenate([model.model_.answer_by_torch(packed).logits for _, packed in model.parts(looked)])
        together: Any = sum(count * said for count, said in zip(joined.counts, [*part.looked, network], strict=True))
        right, alone = (model.classes_[logits.argmax(1)] == truth for logits in (together, network))
        by_default = right if called == "default" else by_default
        row = {"dataset": name, "seed": seed, "idea": called, "fitted": len(texts), "looked_at": len(looked)}
        row |= {"accuracy": 100 * float(right.mean()), "network": 100 * float(alone.mean())}
        row |= {"gained": int((right & ~by_default).sum()), "lost": int((~right & by_default).sum())}
        row |= {"counts": joined.counts.round(3).tolist(), "answers_by": joined.answers_by}
        row |= {"network_seconds": seconds, "linear_seconds": part.seconds, "linear_features": part.n_features}
        _keep(row)


def _keep(row: dict[str, Any]) -> None:
    """Add a row to the file; processes wait for one another."""
    with (Path(gettempdir()) / "mpad-recipe.lock").open("w") as lock:
        flock(lock, LOCK_EX)
        rows = [other for other in _rows() if _key(other) != _key(row)] + [row]
        rows.sort(key=lambda row: (row["dataset"], row["seed"], [*IDEAS, *_EARLIER].index(row["idea"])))
        record = {"commit": results.measured_commit(), "versions": versions(), "rows": rows}
        write_file(_FILE, (json.dumps(record, indent=1) + "\n").encode())


def _rows() -> list[dict[str, Any]]:
    return json.loads(_FILE.read_text())["rows"] if _FILE.is_file() else []


def _key(row: dict[str, Any]) -> tuple[str, int, str]:
    return row["dataset"], row["seed"], row["idea"]


def _draw(name: str, seed: int) -> tuple[list[str], NDArray[Any], list[str], NDArray[Any]]:
    """Documents to fit, and others to look at, of the training part alone."""
    dataset = load_dataset(name)
    texts, labels, rows = dataset.train.texts, np.array(dataset.train.labels), np.arange(len(dataset.train))
    if dataset.cross_validated:
        corpus = split(dataset)
        texts, labels, rows = corpus.texts, np.array(corpus.labels), corpus.splits[0].training
    rows = np.random.default_rng(seed).permutation(rows)
    n = _LONG.get(name, _FITTED)
    fitted, looked = rows[:n], rows[n : n + _LOOKED_AT]
    return [texts[k] for k in fitted], labels[fitted], [texts[k] for k in looked], labels[looked]


def _fitted(idea: Idea, seed: int, texts: list[str], labels: NDArray[Any], looked: list[str]) -> Searched:
    def cased(sources: Any, texts: Any, tokenizer: Any, vocabulary: Any, width: int, extra: int) -> WordVectors:
        known = vocabulary.extended(learn_vocabulary(looked, tokenizer)[0].words)  # new words have capitals, too
        made = make_vectors(sources, texts, tokenizer, known, width, extra)
        columns = np.zeros((len(made.rows), 2), np.float32)
        for number, word in enumerate(made.vocabulary.words):
            columns[number] = word[:1].isupper(), len(word) > 1 and word.isupper()
        rows = np.concatenate([made.rows, _CAPITALS * made.rows.std() * columns], axis=1)
        return WordVectors(made.vocabulary, rows, made.covered)

    tokenizer = "kim-cased" if idea.cased else "auto"
    model = Searched(window=idea.window, tokenizer=tokenizer, random_state=seed, device="cpu", verbose=False)
    model.idea = idea
    kept = patch.object(loop, "BestWeights", AveragedWeights if idea.averaged else BestWeights)
    with kept, patch.object(untrained, "make_vectors", cased if idea.cased else make_vectors):
        return model.fit(texts, labels)


def main() -> None:
    """Run what is asked for and not there yet; print a line an idea."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", nargs="*", default=_DATASETS)
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2])
    parser.add_argument("--ideas", nargs="*", default=list(IDEAS))
    asked = parser.parse_args()
    done = {_key(row) for row in _rows()}
    with ProcessPoolExecutor(2) as pool:
        waiting = []
        for seed in asked.seeds:
            for name in asked.datasets:
                left = [idea for idea in asked.ideas if (name, seed, idea) not in done]
                if any(idea != "case" or name in _CASED for idea in left):
                    waiting.append(pool.submit(_cell, name, seed, left))
        for cell in waiting:
            cell.result()
    print(_table(_rows()))


def _table(rows: Sequence[dict[str, Any]]) -> str:
    """A line an idea: differences in points, with standard errors over drawings; CPU seconds over the default's."""
    first = {(row["dataset"], row["seed"]): row for row in rows if row["idea"] == "default"}
    lines = [
        "| idea | drawings | model | lowest dataset | network alone | CPU time |",
        "|---|---|---|---|---|---|",
    ]
    for idea in {row["idea"]: row for row in rows}:
        own = [(row, first[row["dataset"], row["seed"]]) for row in rows if row["idea"] == idea]
        if not own or idea == "default":
            continue
        model, alone = (_differences(own, name) for name in ("accuracy", "network"))
        each = {
            name: _differences([pair for pair in own if pair[0]["dataset"] == name], "accuracy").mean()
            for name in sorted({row["dataset"] for row, _ in own})
        }
        lowest = min(each, key=lambda name: each[name])
        times = [_seconds(row) / _seconds(default) for row, default in own]
        lines.append(
            f"| {idea} | {len(own)} | {_with_error(model)} | {lowest} {each[lowest]:+.2f} | {_with_error(alone)} "
            f"| {np.median(times):.2f} |"
        )
    return "\n".join(lines)


def _differences(pairs: Sequence[tuple[dict[str, Any], dict[str, Any]]], name: str) -> NDArray[np.float64]:
    return np.array([row[name] - default[name] for row, default in pairs])


def _with_error(differences: NDArray[np.float64]) -> str:
    error = differences.std(ddof=1) / len(differences) ** 0.5 if len(differences) > 1 else float("nan")
    return f"{differences.mean():+.2f} ± {error:.2f}"


def _seconds(row: dict[str, Any]) -> float:
    return float(row["network_seconds"] + row["linear_seconds"])


if __name__ == "__main__":
    main()
