"""What is measured on: real corpora where the folder MPAD_DATA has them, else made-up ones with their shapes.

A real corpus is a file `<name>/all.tsv.xz` or `<name>/train.tsv.xz`, a line `label<TAB>text` a document. In made-up
ones words follow Zipf's law; lengths follow Polarity's (mean 20, deviation 9.5, at most 56), Reuters' R8's (mean 102,
log-deviation 1, at most 964), IMDB's (mean 255, log-deviation 0.7, at most 2,633) or SST's phrases' (mean 7.5, at most
53), as measured on those corpora. Sentences have 17 words on average.
"""

import lzma
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

MADE_UP = "made-up"


@dataclass(frozen=True, eq=False)
class Corpus:
    """Texts with labels."""

    name: str
    texts: list[str]
    labels: list[int]
    real: bool = False

    @property
    def text(self) -> str:
        """What a row of the results calls it."""
        return "real" if self.real else MADE_UP


def short_documents(n: int, seed: int = 0) -> Corpus:
    """Documents of 20 words, like Polarity's."""
    generator = np.random.default_rng(seed)
    lengths = generator.normal(20.3, 9.5, n).round().clip(1, 56).astype(int)
    return Corpus("20-word documents", _texts(lengths, generator, n_words=19_000), _labels(n, generator))


def long_documents(n: int, seed: int = 0) -> Corpus:
    """Documents of 100 words, like R8's."""
    generator = np.random.default_rng(seed)
    lengths = generator.lognormal(np.log(102) - 0.5, 1.0, n).round().clip(5, 964).astype(int)
    return Corpus("100-word documents", _texts(lengths, generator, n_words=23_000), _labels(n, generator))


def polarity(n: int) -> Corpus:
    """Sentences of 20 words."""
    return _real("polarity", n) or short_documents(n)


def reuters(n: int) -> Corpus:
    """News of 100 words."""
    return _real("r8", n) or long_documents(n)


def imdb(n: int, seed: int = 0) -> Corpus:
    """Reviews of 255 words."""
    if real := _real("imdb", n):
        return real
    generator = np.random.default_rng(seed)
    lengths = generator.lognormal(np.log(255) - 0.25, 0.7, n).round().clip(5, 2633).astype(int)
    return Corpus("255-word documents", _texts(lengths, generator, n_words=110_000), _labels(n, generator))


def phrases(n: int, seed: int = 0) -> Corpus:
    """Phrases of 7 words."""
    if real := _real("sst1", n):
        return real
    generator = np.random.default_rng(seed)
    lengths = generator.lognormal(np.log(7.5) - 0.3, 0.8, n).round().clip(1, 53).astype(int)
    return Corpus("7-word phrases", _texts(lengths, generator, n_words=17_000), _labels(n, generator))


@cache
def _real(name: str, n: int) -> Corpus | None:
    """The first n documents of a real corpus, shuffled, if its file is there."""
    folder = Path(os.environ.get("MPAD_DATA", "/nowhere")) / name
    for file in (folder / "all.tsv.xz", folder / "train.tsv.xz"):
        if file.is_file():
            with lzma.open(file, "rt", encoding="utf-8") as lines:
                pairs = [line.rstrip("\n").partition("\t") for line in lines]
            order = np.random.default_rng(0).permutation(len(pairs))[:n]
            classes = sorted({label for label, _, _ in pairs})
            texts, labels = [pairs[k][2] for k in order], [classes.index(pairs[k][0]) for k in order]
            return Corpus(name, texts, labels, real=True)
    return None


def one_document(n_words: int, seed: int = 0) -> str:
    """One document of that many words."""
    return equal_documents(1, n_words, seed)[0]


def equal_documents(n: int, n_words: int, seed: int = 0) -> list[str]:
    """Documents of that many words each."""
    return _texts(np.full(n, n_words), np.random.default_rng(seed), n_words=50_000)


def _labels(n: int, generator: np.random.Generator) -> list[int]:
    return [int(label) for label in generator.integers(0, 2, n)]


def _texts(lengths: np.ndarray, generator: np.random.Generator, n_words: int) -> list[str]:
    weights = 1.0 / np.arange(3, n_words + 3)
    drawn = generator.choice(n_words, int(lengths.sum()), p=weights / weights.sum())
    names = np.array([_name(number) for number in range(n_words)], dtype=object)
    words = names[drawn]
    ends = generator.random(len(words)) < 1 / 17
    words[ends] = words[ends] + "."
    starts = np.concatenate([[0], np.cumsum(lengths)])
    return [" ".join(words[start:end]) for start, end in zip(starts[:-1], starts[1:], strict=True)]


def _name(number: int) -> str:
    """A pronounceable word; the frequent ones are short."""
    syllables = "ba de ki lo mu na po re si tu".split()
    name = syllables[number % 10]
    while number >= 10:
        number //= 10
        name += syllables[number % 10]
    return name
