"""Hold out some of the training documents: to measure the model, to weigh its parts, or to choose an epoch."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpad.data.equal_texts import one_per_group
from mpad.errors import InputError


def hold_out(
    targets: NDArray[np.int64] | NDArray[np.float32],
    fraction: float,
    seed: int,
    among: NDArray[np.bool_] | None = None,
    groups: NDArray[Any] | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Split documents into (training, held out), class by class, so that each class keeps a training document.

    Documents of one group (`text_groups`) stay together. Only documents marked in `among` are held out, by default
    all. The held-out part is empty where every class has one document or one distinct text.
    """
    if not 0.0 <= fraction < 1.0:
        raise InputError(f"validation_fraction must be at least 0 and below 1, not {fraction}")
    generator = np.random.default_rng(seed)
    classes = np.zeros(len(targets), np.int64) if targets.ndim == 2 else targets
    first, place = one_per_group(groups, len(targets))
    free = np.ones(len(first), bool)
    if among is not None:
        free[place[~among]] = False  # a group with a document that must not be held out
    held = np.zeros(len(first), bool)
    for name in np.unique(classes[first]):
        members = generator.permutation(np.flatnonzero(classes[first] == name))
        most = min(round(fraction * len(members)), len(members) - 1)
        held[members[free[members]][:most]] = True
    for name in np.unique(classes):  # a class all of whose documents are copies of held-out ones
        if held[place[classes == name]].all():
            held[place[classes == name]] = False
    return np.flatnonzero(~held[place]), np.flatnonzero(held[place])
