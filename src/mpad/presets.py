"""Named settings: whose network, trained how.

| preset    | network                                                                | learning rate             |
|-----------|------------------------------------------------------------------------|---------------------------|
| `paper`   | the paper's equations                                                  | constant                  |
| `authors` | the authors' published code: an MLP before and after each mean with    | halved every 50 epochs    |
|           | batch norm inside, tanh on the attention score, a dense layer after    |                           |
|           | attention, dropout on the word vectors; without its padding faults     |                           |

A preset that wins on validation data over many datasets will be added as `best`.
"""

from dataclasses import dataclass
from typing import Literal

from mpad.errors import InputError


@dataclass(frozen=True)
class Preset:
    """What a preset's name stands for."""

    authors: bool
    schedule: Literal["constant", "halving"]


PRESETS = {
    "paper": Preset(authors=False, schedule="constant"),
    "authors": Preset(authors=True, schedule="halving"),
}


def find_preset(name: str) -> Preset:
    """Give the preset of that name."""
    if name not in PRESETS:
        raise InputError(f"no preset '{name}' (known: {', '.join(PRESETS)})")
    return PRESETS[name]
