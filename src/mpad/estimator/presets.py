"""Named settings: which network, trained how. A preset is a row of fields, of the network's shape and of training.

| preset    | network                                                                | training                  |
|-----------|------------------------------------------------------------------------|---------------------------|
| `best`    | the authors' network, and a linear part beside it: potentials of words | 15 epochs, a cosine,      |
|           | and pairs of words, and the mean word vector (graph/potentials.py)     | weight decay; fewer where |
|           |                                                                        | documents are many        |
| `paper`   | the paper's equations                                                  | constant rate             |
| `authors` | the authors' published code: an MLP before and after each mean with    | rate halved every 50      |
|           | batch norm inside, tanh on the attention score, a dense layer after    | epochs                    |
|           | attention, dropout on the word vectors; without its padding faults     |                           |

`best` was searched on validation parts of training data alone, one recipe for all datasets (docs/LOG.md).
"""

from dataclasses import dataclass, field
from typing import Any

from mpad.errors import InputError


@dataclass(frozen=True)
class Preset:
    """Settings of a preset: fields of `MPADConfig` and `TrainingConfig`, and whether it has a linear part."""

    network: dict[str, Any] = field(default_factory=dict)
    training: dict[str, Any] = field(default_factory=dict)
    potentials: bool = False
    most_passes: int | None = None  # documents that training passes over at most, in whole epochs, but four of these
    few: int = 0  # with fewer documents than that, batches are a quarter as large
    many: int | None = None  # with more, weights decay more slowly a step: as much an epoch as with so many documents

    def training_on(self, n_documents: int) -> dict[str, Any]:
        """Return fields of `TrainingConfig` for a corpus of that size."""
        training = dict(self.training)
        if self.most_passes is not None:
            training["max_epochs"] = min(training["max_epochs"], max(4, self.most_passes // max(n_documents, 1)))
        if n_documents < self.few:
            training["batch_size"] //= 4
        if self.many is not None and n_documents > self.many:
            training["weight_decay"] *= self.many / n_documents
        return training


_AUTHORS = {
    "mlp_before": True,
    "mlp_norm": True,
    "mlp_relu": False,
    "attention_bias": True,
    "score_tanh": True,
    "attention_dense": True,
}
PRESETS = {
    "best": Preset(
        network=_AUTHORS,
        training={
            "max_epochs": 15,
            "patience": None,
            "batch_size": 64,
            "learning_rate": 0.003,
            "schedule": "cosine",
            "weight_decay": 1.0,
            "keep": "last",
        },
        potentials=True,
        most_passes=400_000,
        few=1_000,
        many=10_000,
    ),
    "paper": Preset(),
    "authors": Preset(network=_AUTHORS, training={"schedule": "halving"}),
}


DEFAULT_PRESET = "best"


def find_preset(name: str) -> Preset:
    """Return the preset of that name."""
    if name not in PRESETS:
        raise InputError(f"no preset '{name}' (known: {', '.join(PRESETS)})")
    return PRESETS[name]
