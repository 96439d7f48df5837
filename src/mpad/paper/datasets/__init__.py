"""Corpora by name: two that are built in, and the paper's eleven."""

from importlib import import_module

from mpad.errors import UnknownDataset
from mpad.paper.datasets.catalogue import BUILT_IN, CATALOGUE, NAMES
from mpad.paper.datasets.dataset import Dataset
from mpad.paper.datasets.files import read_dataset

__all__ = ["Dataset", "load_dataset"]


def load_dataset(name: str) -> Dataset:
    """Load a built-in dataset, or one of the paper's from its files.

    Parameters
    ----------
    name : str
        "tweets" and "docstrings" are built in. The others ("trec", "imdb", ...) are read from the folder MPAD_DATA or
        ~/.cache/mpad; `mpad data list` prints all names.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> from mpad import load_dataset
    >>> len(load_dataset("tweets").train)
    2738

    """
    if name in BUILT_IN:
        dataset: Dataset = import_module(f"{__name__}.{name}").load()
        return dataset
    if name not in CATALOGUE:
        raise UnknownDataset(f"no dataset '{name}' (known: {', '.join(NAMES)})")
    return read_dataset(name)
