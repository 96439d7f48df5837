"""Confidence intervals of shares."""

from typing import NamedTuple


class Share(NamedTuple):
    """A share of documents with its 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{100 * self.value:.1f} % (95 % interval {100 * self.low:.1f} to {100 * self.high:.1f})"


_Z = 1.959964  # of a two-sided 95 % interval


def wilson(right: float, n: int) -> Share:
    """Return the share right / n with its Wilson score interval, which is sound for small n and near 0 and 1."""
    if not n:
        return Share(0.0, 0.0, 1.0)
    share, z2 = right / n, _Z * _Z
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = _Z / (1 + z2 / n) * (share * (1 - share) / n + z2 / (4 * n * n)) ** 0.5
    return Share(share, max(0.0, min(share, centre - half)), min(1.0, max(share, centre + half)))
