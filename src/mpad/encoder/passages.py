"""Texts → passages for pretraining: runs of one to six sentences, and spans of two to eight words of them.

Passages teach how words combine in the documents that the encoder will read; spans teach single phrases. Half of the
spans are laid around a negation where the passage has one.
"""

from collections.abc import Iterable, Iterator

import numpy as np

from mpad.text.tokenizer import READABLE_BOUNDARY

MOST_WORDS = 110  # in a passage
_RUNS = (1, 1, 2, 2, 3, 4, 5, 6)  # sentences in a passage
_SPANS = (2, 3, 3, 4, 4, 5, 6, 8)  # words in a span
_SPAN_SHARE = 0.7  # of the passages with more than nine words
_NEGATIONS = frozenset(
    "not no never nothing nobody nowhere neither nor none cannot without hardly barely isn't wasn't aren't weren't "
    "don't doesn't didn't won't wouldn't can't couldn't shouldn't hasn't haven't hadn't n't".split()
)


def cut_passages(texts: Iterable[str], seed: int = 0) -> Iterator[str]:
    """Yield the passages and spans of texts, in order; the same for the same seed."""
    generator = np.random.default_rng(seed)
    for text in texts:
        for passage in _runs(text, generator):
            yield passage
            words = passage.split()
            if len(words) > 9 and generator.random() < _SPAN_SHARE:
                yield _span(words, generator)


def _runs(text: str, generator: np.random.Generator) -> Iterator[str]:
    """Yield runs of consecutive sentences that together are the text."""
    sentences = [words for part in _sentences(text) if (words := part.split()[:MOST_WORDS])]
    while sentences:
        n, words = int(generator.choice(_RUNS)), sentences.pop(0)
        while sentences and n > 1 and len(words) + len(sentences[0]) <= MOST_WORDS:
            words, n = words + sentences.pop(0), n - 1
        yield " ".join(words)


def _sentences(text: str) -> Iterator[str]:
    start = 0
    for match in READABLE_BOUNDARY.finditer(text):
        yield text[start : match.end()]
        start = match.end()
    yield text[start:]


def _span(words: list[str], generator: np.random.Generator) -> str:
    size = int(generator.choice(_SPANS))
    last = len(words) - size
    start = int(generator.integers(last + 1))
    negated = [k for k, word in enumerate(words) if word.lower() in _NEGATIONS]
    if negated and generator.random() < 0.5:
        at = int(generator.choice(negated))
        start = min(max(at - int(generator.integers(size)), 0), last)
    return " ".join(words[start : start + size])
