"""Corpora by name: two that are built in, and the paper's eleven."""

from mpad.errors import UnknownDataset
from mpad.paper.datasets import docstrings, tweets
from mpad.paper.datasets.catalogue import CATALOGUE
from mpad.paper.datasets.dataset import Dataset
from mpad.paper.datasets.files import read_dataset
from mpad.paper.datasets.names import NAMES

__all__ = ["Dataset", "load_dataset"]


def load_dataset(name: str) -> Dataset:
    """Load a dataset by name: the built-in "tweets" or "docstrings", or one of the paper's from its files."""
    if name in CATALOGUE:
        return read_dataset(name)
    if name not in NAMES:
        raise UnknownDataset(f"no dataset '{name}' (known: {', '.join(NAMES)})")
    return tweets.load() if name == "tweets" else docstrings.load()
