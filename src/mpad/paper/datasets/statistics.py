"""Statistics of a dataset: the columns of the paper's Table 1, and duplicates that bias its scores.

Texts count as the same where their words are the same after Kim's cleaning, lower-cased.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mpad.data.readers import Documents
from mpad.paper.datasets.dataset import Dataset
from mpad.text.tokenizer import KimTokenizer, as_tokenizer
from mpad.text.vector_files import read_rows
from mpad.text.vocabulary import learn_vocabulary


@dataclass(frozen=True)
class Statistics:
    """Counts of one dataset."""

    training: int  # documents, those that choose the epoch included
    test: int  # 0: folds are cut
    classes: int
    mean_words: float
    longest: int
    vocabulary: int
    pretrained: int | None  # words that the vector file has; None: no file given
    duplicates: int = 0  # documents whose text stands before them already
    two_labels: int = 0  # texts that stand with more than one label
    leaked: int = 0  # test documents whose text is a training document's too
    empty: int = 0  # documents without a word


def describe(dataset: Dataset, tokenizer: str = "kim", vectors: str | Path | None = None) -> Statistics:
    """Count. The vocabulary, and the words that have a vector, are those of the tokenizer of that name."""
    texts = [text for part in dataset.parts.values() for text in part.texts]
    labels = [label for part in dataset.parts.values() for label in part.labels or []]
    vocabulary, _ = learn_vocabulary(texts, as_tokenizer(tokenizer))
    keys, lengths = _keys(texts)
    with_labels: dict[bytes, set[str]] = {}
    for key, label in zip(keys, labels, strict=True):
        with_labels.setdefault(key, set()).add(label)
    known = set(keys[: len(dataset.train)])
    tested = keys[len(keys) - len(dataset.test) :]
    return Statistics(
        training=len(texts) - len(dataset.test),
        test=len(dataset.test),
        classes=len(set(labels)),
        mean_words=float(lengths.mean()),
        longest=int(lengths.max()),
        vocabulary=len(vocabulary),
        pretrained=None if vectors is None else _pretrained(vocabulary.words, Path(vectors)),
        duplicates=len(keys) - len(with_labels),
        two_labels=sum(len(result) > 1 for result in with_labels.values()),
        leaked=sum(key in known for key in tested),
        empty=int((lengths == 0).sum()),
    )


def text_groups(documents: Documents) -> list[int]:
    """A number for each document; documents with the same text have the same."""
    keys, _ = _keys(documents.texts)
    number = {key: place for place, key in enumerate(Counter(keys))}
    return [number[key] for key in keys]


def _keys(texts: Sequence[str]) -> tuple[list[bytes], np.ndarray]:
    """Return the key by which texts are compared, and the length in words."""
    _, corpus = learn_vocabulary(texts, KimTokenizer())
    starts = corpus.sentence_start[corpus.document_start]
    flat = corpus.ids.tobytes()
    size = corpus.ids.itemsize
    keys = [flat[size * a : size * b] for a, b in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)]
    return keys, np.diff(starts)


def _pretrained(words: Sequence[str], vectors: Path) -> int:
    known = {word.removeprefix("\\") for word in words}
    return sum(1 for _ in read_rows(vectors, wanted=known.__contains__))
