"""From the original distributions to our files, a reader a format."""

from collections.abc import Callable
from pathlib import Path

from mpad.data.readers import Documents
from mpad.paper.datasets.importers import folders, reuters, sentences, treebank, yelp

__all__ = ["IMPORTERS"]

IMPORTERS: dict[str, Callable[[Path], dict[str, Documents]]] = {
    "reuters": reuters.read,
    "snippets": sentences.read_snippets,
    "bbcsport": folders.read_bbcsport,
    "polarity": sentences.read_polarity,
    "subjectivity": sentences.read_subjectivity,
    "mpqa": sentences.read_mpqa,
    "imdb": folders.read_imdb,
    "trec": sentences.read_trec,
    "sst1": treebank.read_sst1,
    "sst2": treebank.read_sst2,
    "yelp2013": yelp.read,
}
