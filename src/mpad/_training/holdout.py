"""Which training documents are held out to choose the best epoch."""

import numpy as np
from numpy.typing import NDArray

from mpad.errors import InputError


def hold_out(
    targets: NDArray[np.int64] | NDArray[np.float32],
    fraction: float,
    seed: int,
    among: NDArray[np.bool_] | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Split documents into (training, validation), class by class, so that each class keeps a training document.

    Where every class has one document there is nothing to hold out, and validation is empty. Only documents `among`
    those that a mask marks are held out, by default all.
    """
    if not 0.0 <= fraction < 1.0:
        raise InputError(f"validation_fraction must be at least 0 and below 1, not {fraction}")
    generator = np.random.default_rng(seed)
    groups = np.zeros(len(targets), np.int64) if targets.ndim == 2 else targets
    held = np.zeros(len(targets), bool)
    for group in np.unique(groups):
        members = generator.permutation(np.flatnonzero(groups == group))
        most = min(round(fraction * len(members)), len(members) - 1)
        held[(members if among is None else members[among[members]])[:most]] = True
    return np.flatnonzero(~held), np.flatnonzero(held)
