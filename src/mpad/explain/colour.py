"""Weights → colours: blue speaks for the label, orange against it (told apart by colour-blind readers too)."""

from collections.abc import Iterable

FOR, AGAINST = (43, 131, 203), (230, 121, 30)
FAINT = 0.02  # in pictures, weights below this share of the strongest stay uncoloured


def strength(weight: float, largest: float) -> float:
    """Share of the strongest weight, −1 to 1."""
    return 0.0 if largest == 0.0 else max(-1.0, min(1.0, weight / largest))


def largest(weights: Iterable[float]) -> float:
    """The strongest weight, either way."""
    return max((abs(weight) for weight in weights), default=0.0)


def mixed(share: float, background: tuple[int, int, int]) -> tuple[int, int, int]:
    """The colour of a share, laid over a background."""
    colour = FOR if share >= 0 else AGAINST
    red, green, blue = (round(b + (c - b) * min(abs(share), 1.0)) for c, b in zip(colour, background, strict=True))
    return red, green, blue
