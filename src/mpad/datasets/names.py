"""The names of the datasets, known without loading any."""

NAMES = ("docstrings",)
