"""Corpora by name."""

from collections.abc import Callable

from mpad.datasets import docstrings
from mpad.datasets.dataset import Dataset
from mpad.errors import UnknownDataset

__all__ = ["DATASETS", "Dataset", "load_dataset"]

DATASETS: dict[str, Callable[[], Dataset]] = {"docstrings": docstrings.load}


def load_dataset(name: str) -> Dataset:
    """Load the dataset of that name."""
    if name not in DATASETS:
        raise UnknownDataset(f"no dataset '{name}' (known: {', '.join(DATASETS)})")
    return DATASETS[name]()
