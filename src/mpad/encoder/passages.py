"""Texts → passages for pretraining: runs of one to six sentences, and spans of two to eight words of them.

Passages teach how words combine in the documents that the encoder will read; spans teach single phrases. Half of the
spans are laid around a negation where the passage has one. Many spans have a twin without their negation, or with a
"not" after an auxiliary verb: from the difference the network learns what a negation does.
"""

from collections.abc import Iterable, Iterator

import numpy as np

from mpad.text.tokenizer import READABLE_BOUNDARY

MOST_WORDS = 110  # in a passage
_RUNS = (1, 1, 2, 2, 3, 4, 5, 6)  # sentences in a passage
_SPANS = (2, 3, 3, 4, 4, 5, 6, 8)  # words in a span
_SPAN_SHARE = 0.7  # of the passages with more than nine words
_TWIN_SHARE = 0.5  # of the spans that can have a twin
_AFFIRMED = {
    **dict.fromkeys(("not", "no", "hardly", "barely", "n't"), ""),
    **{"never": "always", "nothing": "everything", "nobody": "everybody", "nowhere": "everywhere", "none": "all"},
    **{"neither": "either", "nor": "or", "cannot": "can", "can't": "can", "won't": "will", "without": "with"},
    **{verb + "n't": verb for verb in "is was are were do does did would could should has have had".split()},
}
_AUXILIARIES = frozenset("is was are were am will would can could should must may might".split())


def cut_passages(texts: Iterable[str], seed: int = 0) -> Iterator[str]:
    """Yield the passages and spans of texts, in order; the same for the same seed."""
    generator = np.random.default_rng(seed)
    for text in texts:
        for passage in _runs(text, generator):
            yield passage
            words = passage.split()
            if len(words) > 9 and generator.random() < _SPAN_SHARE:
                span = _span(words, generator)
                yield " ".join(span)
                if (twin := _twin(span)) is not None and generator.random() < _TWIN_SHARE:
                    yield " ".join(twin)


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


def _span(words: list[str], generator: np.random.Generator) -> list[str]:
    size = int(generator.choice(_SPANS))
    last = len(words) - size
    start = int(generator.integers(last + 1))
    negated = [k for k, word in enumerate(words) if word.lower() in _AFFIRMED]
    if negated and generator.random() < 0.5:
        at = int(generator.choice(negated))
        start = min(max(at - int(generator.integers(size)), 0), last)
    return words[start : start + size]


def _twin(words: list[str]) -> list[str] | None:
    """Return words without their first negation, or with one after an auxiliary verb; None where there is neither."""
    for k, word in enumerate(words):
        if (affirmed := _AFFIRMED.get(word.lower())) is not None:
            return [*words[:k], *([affirmed] if affirmed else []), *words[k + 1 :]]
    for k, word in enumerate(words[:-1]):
        if word.lower() in _AUXILIARIES:
            return [*words[: k + 1], "not", *words[k + 1 :]]
    return None
