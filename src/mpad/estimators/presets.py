"""Named settings: which network, trained how. A preset is a row of fields, of the network's shape and of training.

| preset    | network                                                                | learning rate             |
|-----------|------------------------------------------------------------------------|---------------------------|
| `paper`   | the paper's equations                                                  | constant                  |
| `authors` | the authors' published code: an MLP before and after each mean with    | halved every 50 epochs    |
|           | batch norm inside, tanh on the attention score, a dense layer after    |                           |
|           | attention, dropout on the word vectors; without its padding faults     |                           |

A preset that wins on validation data over many datasets will be added as `best`.
"""

from dataclasses import dataclass, field
from typing import Any

from mpad.errors import InputError


@dataclass(frozen=True)
class Preset:
    """What a preset's name stands for: fields of `MPADConfig` and of `TrainingConfig`."""

    network: dict[str, Any] = field(default_factory=dict)
    training: dict[str, Any] = field(default_factory=dict)


PRESETS = {
    "paper": Preset(),
    "authors": Preset(
        network={
            "mlp_before": True,
            "mlp_norm": True,
            "mlp_relu": False,
            "attention_bias": True,
            "score_tanh": True,
            "attention_dense": True,
        },
        training={"schedule": "halving"},
    ),
}


DEFAULT_PRESET = "paper"


def find_preset(name: str) -> Preset:
    """Give the preset of that name."""
    if name not in PRESETS:
        raise InputError(f"no preset '{name}' (known: {', '.join(PRESETS)})")
    return PRESETS[name]
