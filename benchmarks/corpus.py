"""Made-up corpora with the shapes of real ones, so that the benchmarks need no data.

Words follow Zipf's law; lengths follow Polarity's (mean 20, deviation 9.5, at most 56) or Reuters' R8's (mean 102,
log-deviation 1, at most 964), as measured on those corpora. Sentences have 17 words on average.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Corpus:
    """Texts with labels."""

    name: str
    texts: list[str]
    labels: list[int]


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


def one_document(n_words: int, seed: int = 0) -> str:
    """One document of that many words."""
    return _texts(np.array([n_words]), np.random.default_rng(seed), n_words=50_000)[0]


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
