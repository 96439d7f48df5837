"""The paper's protocol: what is trained on each dataset, and how.

| what              | all datasets                                              | but                                 |
|-------------------|-----------------------------------------------------------|-------------------------------------|
| splits            | the datasets' own; ten folds where there is no test part  | `grouped`: equal texts share a fold |
| the epoch         | best validation accuracy: 10 % of each training part      | SST: the dev set                    |
| width             | 64                                                        | IMDB, Yelp: 128                     |
| word vectors      | a pretrained file, not trained further                    | Yelp: word2vec on its own text      |
| words             | Kim's, lower-cased                                        | option `kim-cased`                  |
| epochs            | at most 200, until 30 bring nothing better                | IMDB, Yelp: until 10                |
| … of the baselines | until 10 bring nothing better, batches of 64              | SST, IMDB, Yelp: until 5, of 128    |
| seeds             | one over ten folds                                        | five where the split is fixed       |

The rows `mpad-best` are the default of today, one recipe for every dataset: it says itself how wide it is and how long
it trains, and reads distilled vectors beside the pretrained file's. So does the linear stack, its baseline.
"""

from dataclasses import dataclass, field
from typing import Any

from mpad.errors import InputError
from mpad.estimator.classifier import TextClassifier
from mpad.paper import zoo
from mpad.paper.baselines.base import PlainClassifier
from mpad.paper.datasets.catalogue import CATALOGUE, FOLDS
from mpad.paper.experiments import paper
from mpad.registry import REGISTRY
from mpad.text.distilled import AUTO
from mpad.text.vectors import CORPUS

_LARGE = ("imdb", "sst1", "sst2", "yelp2013")
_LONG = ("imdb", "yelp2013")
BASELINE = "tfidf-svm"
_ABLATIONS: dict[str, dict[str, Any]] = {
    "mpad-1mp": {"steps": 1},
    "mpad-3mp": {"steps": 3},
    "mpad-4mp": {"steps": 4},
    "mpad-undirected": {"directed": False},
    "mpad-no-master": {"master_node": False},
    "mpad-no-renormalisation": {"renormalise": False},
    "mpad-neighbours-only": {"combine": "identity"},
    "mpad-no-master-skip": {"master_skip": False},
}
RECIPES: dict[str, dict[str, Any]] = {
    "mpad-best-network": {"potentials": False},
    "mpad-best": {},
    "mpad-best-5": {"members": 5},
}
# A baseline trains its vectors further if its own paper does, unless validation documents were against it
# (c-lstm, disan, tree-lstm: docs/LOG.md).
_BASELINES: dict[str, dict[str, Any]] = {
    "cnn": {"learn_vectors": True},
    "dan": {"learn_vectors": True},
    "tree-lstm": {"batch_size": 64, "learning_rate": 0.002},
    "drnn": {"batch_size": 64},
    "lstmn": {},
    "c-lstm": {},
    "disan": {},
    "lstm-grnn": {},
    "hn-att": {"learn_vectors": True},
    "texting": {},
    "widemlp": {"vectors": None, "vector_size": 1024},
}
PLAIN = tuple(name for name, entry in REGISTRY.items() if not entry.is_network)
_VARIANTS = tuple(name for name, entry in REGISTRY.items() if entry.kind == "mpad")
MODELS = (*_VARIANTS, *_ABLATIONS, *RECIPES, *_BASELINES, *PLAIN)  # what can be run today


@dataclass(frozen=True)
class Cell:
    """One cell of a table: a model on a dataset, over all its folds or seeds."""

    dataset: str
    model: str  # a row's name
    preset: str = "authors"
    tokenizer: str = "kim"
    grouped: bool = False  # folds keep equal texts together
    folds: tuple[int, ...] = field(default=())  # which of the ten; of a fixed split, only 0
    seeds: tuple[int, ...] = field(default=())

    @property
    def setting(self) -> dict[str, Any]:
        """Return the settings that identify this cell's records among those of its dataset and model."""
        preset = None if self.model in PLAIN or self.model in _BASELINES else self.preset
        preset = "best" if self.model in RECIPES else preset
        return {
            "preset": preset,
            "tokenizer": words_of(self.model, self.tokenizer),
            "grouped": self.grouped,
        }

    @property
    def runs(self) -> list[tuple[int, int]]:
        """(fold, seed) of each record."""
        return [(fold, seed) for seed in self.seeds for fold in self.folds]


def make_cell(
    dataset: str, model: str, *, n_folds: int | None = None, n_seeds: int | None = None, **setting: Any
) -> Cell:
    """A cell by the protocol; the first few folds or seeds alone where a number is given."""
    if dataset not in CATALOGUE:
        raise InputError(f"no dataset '{dataset}' in the paper (it has: {', '.join(CATALOGUE)})")
    if model not in MODELS:
        raise InputError(f"no model '{model}' to run (known: {', '.join(MODELS)})")
    for name, number, most in (("folds", n_folds, 10), ("seeds", n_seeds, 1000)):
        if number is not None and not 1 <= number <= most:
            raise InputError(f"{name} must be from 1 to {most}, not {number}")
    if reads_trees(model) and dataset not in ("sst1", "sst2"):
        raise InputError(f"'{model}' reads parse trees, which only sst1 and sst2 have")
    if CATALOGUE[dataset].parts == FOLDS:
        folds, seeds = range(n_folds or 10), range(n_seeds or 1)
    else:  # one split: "3 folds" of it are 3 seeds
        folds, seeds = range(1), range(n_seeds or n_folds or 5)
    if model in PLAIN:
        seeds = range(1)  # nothing is chosen by chance, or only once
    return Cell(dataset, model, folds=tuple(folds), seeds=tuple(seeds), **setting)


def make_estimator(cell: Cell, vectors: str | None, **options: Any) -> TextClassifier:
    """The unfitted network of a cell; `options` stand before the protocol's."""
    shared = {
        "tokenizer": cell.tokenizer,
        "vectors": CORPUS if cell.dataset == "yelp2013" else vectors,
        "vector_size": 200,  # where they are learnt from the corpus
        "extra_words": 0,
        "max_epochs": 200,
        "patience": 10 if cell.dataset in _LONG else 30,
    }
    if cell.model in _BASELINES:
        large = cell.dataset in _LARGE
        own = {"patience": 5 if large else 10, "batch_size": 128 if large else 64, **_BASELINES[cell.model]}
        return zoo.make_network(cell.model, **{**_checked(cell, {**shared, **own}), **options})
    if cell.model in RECIPES:
        words = {**_checked(cell, {"vectors": vectors}), "tokenizer": cell.tokenizer, "extra_words": 0}
        own = {"preset": "best", **words, "vectors": [AUTO, vectors], **RECIPES[cell.model]}
        return zoo.make_network("mpad", **{**own, **options})
    own = {"preset": cell.preset, "hidden": 128 if cell.dataset in _LONG else 64, **_ABLATIONS.get(cell.model, {})}
    name = "mpad" if cell.model in _ABLATIONS else cell.model
    return zoo.make_network(name, **{**_checked(cell, shared), **own, **options})


def words_of(model: str, tokenizer: str) -> str | None:
    """Whose words a model reads: those of the tokenizer, unless it brings its own or reads trees."""
    return None if model in PLAIN else "trees" if reads_trees(model) else tokenizer


def reads_trees(model: str) -> bool:
    """Return whether a model reads parse trees instead of text."""
    return model in REGISTRY and REGISTRY[model].reads == "trees"


def make_plain(cell: Cell, vectors: str | None) -> PlainClassifier:
    """The unfitted estimator of a cell without a network."""
    needs: dict[str, Any] = _checked(cell, {"vectors": vectors}) if cell.model in ("wmd", "linear-stack") else {}
    if cell.model == "linear-stack":
        needs = {"vectors": [AUTO, vectors]}
    made = zoo.make(cell.model, **needs)
    assert isinstance(made, PlainClassifier)
    return made


def _checked(cell: Cell, options: dict[str, Any]) -> dict[str, Any]:
    if options["vectors"] is None and cell.model != "widemlp":
        raise InputError(
            f"{cell.dataset} is run with pretrained word vectors: name their file with --vectors or MPAD_VECTORS "
            "(the paper: Google News, word2vec, 300 numbers a word)"
        )
    return options


def table_models(table: str) -> tuple[str, ...]:
    """The rows of a table that can be run."""
    rows = paper.TABLE_2 if table == "table2" else paper.TABLE_3
    today = ["widemlp", "texting", *PLAIN, *RECIPES] if table == "table2" else [BASELINE]
    return tuple(dict.fromkeys([*[row for row in rows if row in MODELS], *today]))
