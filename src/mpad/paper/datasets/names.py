"""The names of the datasets, known without loading any."""

from mpad.paper.datasets.catalogue import CATALOGUE

PAPER = tuple(CATALOGUE)
BUILT_IN = ("tweets", "docstrings")
NAMES = (*BUILT_IN, *PAPER)
