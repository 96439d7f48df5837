"""Behavior tests by minimal pairs: two similar sentences, of which the first is more positive.

There are two hundred pairs, half about products and half about films: negation, word order (the same words in another
order), intensifiers, and contrast with "but", where the last part decides. The result differs from accuracy: a bag of
words cannot distinguish the two sentences of a word-order pair, however accurate it is.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpad.errors import InputError
from mpad.estimator.held_out_scores import Share, wilson

CATEGORIES = ("negation", "word order", "intensifiers", "contrast")
_PAIRS_PER_CELL = 25  # per category and domain
_THINGS = {
    "products": ("camera", "battery", "screen", "keyboard", "sound", "case", "manual", "price", "software", "zoom"),
    "films": ("film", "plot", "acting", "script", "music", "ending", "cast", "direction", "dialogue", "pace"),
}
_GOOD = ("good", "great", "excellent", "wonderful", "impressive", "enjoyable", "brilliant")
_BAD = ("bad", "terrible", "awful", "poor", "disappointing", "boring", "horrible")
_STRONG, _WEAK = ("very", "extremely", "really", "absolutely"), ("slightly", "somewhat", "hardly", "barely")
_POSITIVE_NAMES = {"positive", "pos", "good", "1", "true", "yes", "fresh"}  # usual names of the positive class


@dataclass(frozen=True)
class Pair:
    """Two sentences, the more positive one first, in `positive`."""

    category: str
    domain: str
    positive: str
    negative: str


@dataclass(frozen=True)
class Behavior:
    """Result of a model on the pairs of a category."""

    category: str
    pairs: int
    right: float  # share of pairs whose first sentence has the higher positive probability

    @property
    def interval(self) -> Share:
        """Share of right pairs with its 95 % interval."""
        return wilson(self.right * self.pairs, self.pairs)


def minimal_pairs() -> list[Pair]:
    """Return the two hundred pairs, which are always the same."""
    pairs: list[Pair] = []
    for domain, things in _THINGS.items():
        for category, sentences in zip(CATEGORIES, (_negation, _order, _intensity, _contrast), strict=True):
            fillers = zip(cycle(things), cycle(_GOOD), cycle(_BAD), cycle(_STRONG), cycle(_WEAK), strict=False)
            chosen = islice(enumerate(fillers), _PAIRS_PER_CELL)
            pairs += [Pair(category, domain, *sentences(k, *words, things[(k + 3) % 10])) for k, words in chosen]
    return pairs


def _negation(k: int, thing: str, good: str, bad: str, strong: str, weak: str, other: str) -> tuple[str, str]:
    templates = (
        (f"The {thing} is {good}.", f"The {thing} is not {good}."),
        (f"The {thing} is not {bad}.", f"The {thing} is {bad}."),
        (f"I would call the {thing} {good}.", f"I would not call the {thing} {good}."),
        (f"The {thing} was {good}.", f"The {thing} was never {good}."),
        (f"Nobody can call the {thing} {bad}.", f"Everybody can call the {thing} {bad}."),
    )
    return templates[k % len(templates)]


def _order(k: int, thing: str, good: str, bad: str, strong: str, weak: str, other: str) -> tuple[str, str]:
    templates = (
        (f"The {thing} is {good}, not {bad}.", f"The {thing} is {bad}, not {good}."),
        (f"I expected a {bad} {thing} and got a {good} one.", f"I expected a {good} {thing} and got a {bad} one."),
        (f"Not {bad} at all, the {thing} is {good}.", f"Not {good} at all, the {thing} is {bad}."),
        (f"The {thing} went from {bad} to {good}.", f"The {thing} went from {good} to {bad}."),
        (f"The {thing} is more {good} than {bad}.", f"The {thing} is more {bad} than {good}."),
    )
    return templates[k % len(templates)]


def _intensity(k: int, thing: str, good: str, bad: str, strong: str, weak: str, other: str) -> tuple[str, str]:
    templates = (
        (f"The {thing} is {strong} {good}.", f"The {thing} is {weak} {good}."),
        (f"The {thing} is {weak} {bad}.", f"The {thing} is {strong} {bad}."),
    )
    return templates[k % len(templates)]


def _contrast(k: int, thing: str, good: str, bad: str, strong: str, weak: str, other: str) -> tuple[str, str]:
    templates = (
        (f"The {thing} is {bad}, but the {other} is {good}.", f"The {other} is {good}, but the {thing} is {bad}."),
        (f"The {thing} looked {bad}, but it is {good}.", f"The {thing} looked {good}, but it is {bad}."),
        (f"{bad.capitalize()} {thing}, but {good} all in all.", f"{good.capitalize()} {thing}, but {bad} all in all."),
    )
    return templates[k % len(templates)]


def check_behavior(
    classes: Sequence[Any], probabilities: Callable[[list[str]], NDArray[np.float64]], positive: str | None = None
) -> list[Behavior]:
    """Test a two-class model on minimal pairs of sentiment.

    Parameters
    ----------
    classes : sequence
        The two classes of the model.
    probabilities : callable
        Function from a list of texts to probabilities, (texts, 2), such as `classifier.predict_proba`.
    positive : str, optional
        The positive class; by default it is recognized by its name, or by the model's prediction for praise.

    Returns
    -------
    list of Behavior
        One per category, then "all".

    Raises
    ------
    InputError
        If there are not two classes, or `positive` is none of them.

    """
    column = _positive_column(classes, probabilities, positive)
    pairs = minimal_pairs()
    firsts, seconds = ([getattr(pair, name) for pair in pairs] for name in ("positive", "negative"))
    right = probabilities(firsts)[:, column] > probabilities(seconds)[:, column]
    category = np.array([pair.category for pair in pairs])
    rows = [Behavior(name, int((category == name).sum()), float(right[category == name].mean())) for name in CATEGORIES]
    return [*rows, Behavior("all", len(pairs), float(right.mean()))]


def _positive_column(
    classes: Iterable[Any], probabilities: Callable[[list[str]], NDArray[np.float64]], positive: str | None
) -> int:
    """Return the column of the positive class, by argument, by name, or by the model's prediction for praise."""
    names = [str(name) for name in classes]
    if len(names) != 2:
        raise InputError(f"minimal pairs of sentiment are for models of two classes; this one has {len(names)}")
    if positive is not None:
        if positive not in names:
            raise InputError(f"no class '{positive}' (known: {', '.join(names)})")
        return names.index(positive)
    known = [k for k, name in enumerate(names) if name.lower() in _POSITIVE_NAMES]
    if len(known) == 1:
        return known[0]
    praise, blame = (" ".join(words) for words in (_GOOD, _BAD))
    lead = np.subtract(*probabilities([praise, blame]))
    return int(lead.argmax())
