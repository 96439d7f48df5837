"""Keywords, phrases and a summary, read off an explanation: no further pass over the network."""

from dataclasses import dataclass
from itertools import pairwise

from mpad.explain.explanation import Explanation, SentenceWeight, WordWeight, shown

_TELLING = 0.2  # of the strongest word: below it a word carries no phrase on


@dataclass(frozen=True)
class Keyword:
    """A word or phrase with all its occurrences together."""

    text: str
    weight: float
    spans: tuple[tuple[int, int], ...]


def keywords(explanation: Explanation, n: int = 10) -> list[Keyword]:
    """The distinct words that speak most for the label."""
    return _ranked([(word.word, [word]) for word in explanation.words if any(map(str.isalnum, word.word))], n)


def phrases(explanation: Explanation, n: int = 5) -> list[Keyword]:
    """Runs of at least two neighbouring words of a sentence that all speak for the label."""
    least = _TELLING * max((word.weight for word in explanation.words), default=0.0)
    runs: list[list[WordWeight]] = []
    for before, word in pairwise([None, *explanation.words]):
        assert word is not None
        if word.weight <= 0 or word.weight < least:
            continue
        follows = runs and before is not None and runs[-1][-1] is before and before.sentence == word.sentence
        runs[-1].append(word) if follows else runs.append([word])
    return _ranked([(_written(run), run) for run in runs if len(run) > 1], n)


def _written(run: list[WordWeight]) -> str:
    """Words as they stand in the text: with a space between, unless there is nothing (parts of "don't"; Chinese)."""
    rest = ((" " if before.end < word.start else "") + shown(word.word) for before, word in pairwise(run))
    return shown(run[0].word) + "".join(rest)


def summary(explanation: Explanation, n: int = 3) -> list[SentenceWeight]:
    """The sentences that weigh most for the label, in the order of the text."""
    strongest = sorted(explanation.sentences, key=lambda sentence: -sentence.weight)[:n]
    return sorted(strongest, key=lambda sentence: sentence.start)


def _ranked(result: list[tuple[str, list[WordWeight]]], n: int) -> list[Keyword]:
    together: dict[str, list[list[WordWeight]]] = {}
    for text, run in result:
        together.setdefault(text, []).append(run)
    ranked = [
        Keyword(
            text,
            sum(word.weight for run in runs for word in run),
            tuple((run[0].start, run[-1].end) for run in runs),
        )
        for text, runs in together.items()
    ]
    return sorted((one for one in ranked if one.weight > 0), key=lambda one: -one.weight)[:n]
