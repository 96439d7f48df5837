"""Behavior tests by minimal pairs: two similar sentences, of which the first is more positive.

There are two hundred pairs, half about products and half about films: negation, word order (the same words in another
order), intensifiers, and contrast with "but", where the last part decides. The result differs from accuracy: a bag of
words cannot distinguish the two sentences of a word-order pair, however accurate it is.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpad.errors import InputError
from mpad.estimator.held_out_scores import Share, wilson

_PAIRS_PER_CELL = 25  # per category and domain
_THINGS = {
    "products": ("camera", "battery", "screen", "keyboard", "sound", "case", "manual", "price", "software", "zoom"),
    "films": ("film", "plot", "acting", "script", "music", "ending", "cast", "direction", "dialogue", "pace"),
}
_WORDS = {
    "good": ("good", "great", "excellent", "wonderful", "impressive", "enjoyable", "brilliant"),
    "bad": ("bad", "terrible", "awful", "poor", "disappointing", "boring", "horrible"),
    "strong": ("very", "extremely", "really", "absolutely"),
    "weak": ("slightly", "somewhat", "hardly", "barely"),
}
_POSITIVE_NAMES = {"positive", "pos", "good", "1", "true", "yes", "fresh"}  # usual names of the positive class
# The more positive sentence first; {other} is another thing.
_TEMPLATES = {
    "negation": (
        ("The {thing} is {good}.", "The {thing} is not {good}."),
        ("The {thing} is not {bad}.", "The {thing} is {bad}."),
        ("I would call the {thing} {good}.", "I would not call the {thing} {good}."),
        ("The {thing} was {good}.", "The {thing} was never {good}."),
        ("Nobody can call the {thing} {bad}.", "Everybody can call the {thing} {bad}."),
    ),
    "word order": (
        ("The {thing} is {good}, not {bad}.", "The {thing} is {bad}, not {good}."),
        ("I expected a {bad} {thing} and got a {good} one.", "I expected a {good} {thing} and got a {bad} one."),
        ("Not {bad} at all, the {thing} is {good}.", "Not {good} at all, the {thing} is {bad}."),
        ("The {thing} went from {bad} to {good}.", "The {thing} went from {good} to {bad}."),
        ("The {thing} is more {good} than {bad}.", "The {thing} is more {bad} than {good}."),
    ),
    "intensifiers": (
        ("The {thing} is {strong} {good}.", "The {thing} is {weak} {good}."),
        ("The {thing} is {weak} {bad}.", "The {thing} is {strong} {bad}."),
    ),
    "contrast": (
        ("The {thing} is {bad}, but the {other} is {good}.", "The {other} is {good}, but the {thing} is {bad}."),
        ("The {thing} looked {bad}, but it is {good}.", "The {thing} looked {good}, but it is {bad}."),
        ("{bad} {thing}, but {good} all in all.", "{good} {thing}, but {bad} all in all."),
    ),
}
CATEGORIES = tuple(_TEMPLATES)
_SAME_SIDE = "intensifiers"  # both sentences are praise, or both blame
_SAME = 1e-6  # difference of probabilities that counts as a tie


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
    right: float  # share of pairs whose first sentence has the higher positive probability; half is chance
    ties: float  # share of pairs whose sentences have the same probability
    both: float | None  # share with both sentences on their own side of one half; a quarter is chance

    @property
    def interval(self) -> Share:
        """Share of right pairs with its 95 % interval."""
        return wilson(self.right * self.pairs, self.pairs)


def minimal_pairs() -> list[Pair]:
    """Return the two hundred pairs, which are always the same."""
    pairs = []
    for domain, things in _THINGS.items():
        for category, templates in _TEMPLATES.items():
            for k in range(_PAIRS_PER_CELL):
                words = {name: choices[k % len(choices)] for name, choices in _WORDS.items()}
                words |= {"thing": things[k % 10], "other": things[(k + 3) % 10]}
                sentences = (sentence.format(**words).capitalize() for sentence in templates[k % len(templates)])
                pairs.append(Pair(category, domain, *sentences))
    return pairs


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
    first, second = probabilities(firsts)[:, column], probabilities(seconds)[:, column]
    right, ties, both = first > second, np.abs(first - second) < _SAME, (first > 0.5) & (second < 0.5)
    category = np.array([pair.category for pair in pairs])
    opposed = category != _SAME_SIDE

    def score(name: str, chosen: NDArray[np.bool_]) -> Behavior:
        decided = both[chosen & opposed]
        share = float(decided.mean()) if len(decided) else None
        return Behavior(name, int(chosen.sum()), float(right[chosen].mean()), float(ties[chosen].mean()), share)

    return [*(score(name, category == name) for name in CATEGORIES), score("all", np.ones(len(pairs), bool))]


def _positive_column(
    classes: Sequence[Any], probabilities: Callable[[list[str]], NDArray[np.float64]], positive: str | None
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
    praise, blame = probabilities([" ".join(_WORDS["good"]), " ".join(_WORDS["bad"])])
    return int((praise - blame).argmax())
