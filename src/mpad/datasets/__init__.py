"""Corpora by name: two that are built in, and the paper's eleven."""

from mpad.datasets import docstrings, tweets
from mpad.datasets.catalogue import CATALOGUE
from mpad.datasets.dataset import Dataset
from mpad.datasets.files import read_dataset
from mpad.datasets.names import NAMES
from mpad.errors import UnknownDataset

__all__ = ["Dataset", "load_dataset"]


def load_dataset(name: str) -> Dataset:
    """Load a dataset by name: the built-in "tweets" or "docstrings", or one of the paper's from its files."""
    if name in CATALOGUE:
        return read_dataset(name)
    if name not in NAMES:
        raise UnknownDataset(f"no dataset '{name}' (known: {', '.join(NAMES)})")
    return tweets.load() if name == "tweets" else docstrings.load()
