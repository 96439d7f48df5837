"""Minimal pairs: two sentences that differ in little, of which the first should be called more positive.

Two hundred pairs, half on products and half on films: negation, word order (the same words in another order),
intensifiers, and contrast with "but", where what comes last counts most. What passes is not accuracy: a bag of words
cannot tell the two sentences of a word-order pair apart, however accurate it is.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpad.errors import InputError
from mpad.estimator.intervals import Share, wilson

CATEGORIES = ("negation", "word order", "intensifiers", "contrast")
_EACH = 25  # pairs of a category and a domain
_THINGS = {
    "products": ("camera", "battery", "screen", "keyboard", "sound", "case", "manual", "price", "software", "zoom"),
    "films": ("film", "plot", "acting", "script", "music", "ending", "cast", "direction", "dialogue", "pace"),
}
_GOOD = ("good", "great", "excellent", "wonderful", "impressive", "enjoyable", "brilliant")
_BAD = ("bad", "terrible", "awful", "poor", "disappointing", "boring", "horrible")
_STRONG, _WEAK = ("very", "extremely", "really", "absolutely"), ("slightly", "somewhat", "hardly", "barely")
_KNOWN = {"positive", "pos", "good", "1", "true", "yes", "fresh"}  # what people call the positive class


@dataclass(frozen=True)
class Pair:
    """Two sentences, the more positive one first."""

    category: str
    domain: str
    positive: str
    negative: str


@dataclass(frozen=True)
class Behaviour:
    """How many pairs of a category a model gets right."""

    category: str
    pairs: int
    right: float  # share of pairs whose first sentence has the higher probability of being positive

    @property
    def interval(self) -> Share:
        """The share with its 95 % interval."""
        return wilson(self.right * self.pairs, self.pairs)


def minimal_pairs() -> list[Pair]:
    """All two hundred, always the same."""
    pairs: list[Pair] = []
    for domain, things in _THINGS.items():
        for category, sentences in zip(CATEGORIES, (_negation, _order, _intensity, _contrast), strict=True):
            words = zip(cycle(things), cycle(_GOOD), cycle(_BAD), cycle(_STRONG), cycle(_WEAK), strict=False)
            chosen = islice(enumerate(words), _EACH)
            pairs += [Pair(category, domain, *sentences(k, *given, things[(k + 3) % 10])) for k, given in chosen]
    return pairs


def _negation(k: int, thing: str, good: str, bad: str, strong: str, weak: str, other: str) -> tuple[str, str]:
    made = (
        (f"The {thing} is {good}.", f"The {thing} is not {good}."),
        (f"The {thing} is not {bad}.", f"The {thing} is {bad}."),
        (f"I would call the {thing} {good}.", f"I would not call the {thing} {good}."),
        (f"The {thing} was {good}.", f"The {thing} was never {good}."),
        (f"Nobody can call the {thing} {bad}.", f"Everybody can call the {thing} {bad}."),
    )
    return made[k % len(made)]


def _order(k: int, thing: str, good: str, bad: str, strong: str, weak: str, other: str) -> tuple[str, str]:
    made = (
        (f"The {thing} is {good}, not {bad}.", f"The {thing} is {bad}, not {good}."),
        (f"I expected a {bad} {thing} and got a {good} one.", f"I expected a {good} {thing} and got a {bad} one."),
        (f"Not {bad} at all, the {thing} is {good}.", f"Not {good} at all, the {thing} is {bad}."),
        (f"The {thing} went from {bad} to {good}.", f"The {thing} went from {good} to {bad}."),
        (f"The {thing} is more {good} than {bad}.", f"The {thing} is more {bad} than {good}."),
    )
    return made[k % len(made)]


def _intensity(k: int, thing: str, good: str, bad: str, strong: str, weak: str, other: str) -> tuple[str, str]:
    made = (
        (f"The {thing} is {strong} {good}.", f"The {thing} is {weak} {good}."),
        (f"The {thing} is {weak} {bad}.", f"The {thing} is {strong} {bad}."),
    )
    return made[k % len(made)]


def _contrast(k: int, thing: str, good: str, bad: str, strong: str, weak: str, other: str) -> tuple[str, str]:
    made = (
        (f"The {thing} is {bad}, but the {other} is {good}.", f"The {other} is {good}, but the {thing} is {bad}."),
        (f"The {thing} looked {bad}, but it is {good}.", f"The {thing} looked {good}, but it is {bad}."),
        (f"{bad.capitalize()} {thing}, but {good} all in all.", f"{good.capitalize()} {thing}, but {bad} all in all."),
    )
    return made[k % len(made)]


def check_behaviour(
    classes: Sequence[Any], probabilities: Callable[[list[str]], NDArray[np.float64]], positive: str | None = None
) -> list[Behaviour]:
    """Ask a model of two classes, by the probabilities that it gives to texts; all pairs last, as "all"."""
    column = _positive_column(classes, probabilities, positive)
    pairs = minimal_pairs()
    firsts, seconds = ([getattr(pair, name) for pair in pairs] for name in ("positive", "negative"))
    right = probabilities(firsts)[:, column] > probabilities(seconds)[:, column]
    of = np.array([pair.category for pair in pairs])
    rows = [Behaviour(name, int((of == name).sum()), float(right[of == name].mean())) for name in CATEGORIES]
    return [*rows, Behaviour("all", len(pairs), float(right.mean()))]


def _positive_column(
    classes: Iterable[Any], probabilities: Callable[[list[str]], NDArray[np.float64]], positive: str | None
) -> int:
    """Which class is the positive one: as said, by its name, or by what the model calls praise."""
    names = [str(name) for name in classes]
    if len(names) != 2:
        raise InputError(f"minimal pairs of sentiment are for models of two classes; this one has {len(names)}")
    if positive is not None:
        if positive not in names:
            raise InputError(f"no class '{positive}' (known: {', '.join(names)})")
        return names.index(positive)
    known = [k for k, name in enumerate(names) if name.lower() in _KNOWN]
    if len(known) == 1:
        return known[0]
    praise, blame = (" ".join(words) for words in (_GOOD, _BAD))
    lead = np.subtract(*probabilities([praise, blame]))
    return int(lead.argmax())
