"""What to show of a text that is too long to be shown whole."""

from collections.abc import Sequence

from mpad.explain.explanation import WordWeight

_AROUND = 20  # words on each side of a strong one


def strongest_places(words: Sequence[WordWeight], most: int) -> tuple[list[int], str]:
    """Places of the words to show: all, or of many those around the strongest; and what is to be said of it."""
    if len(words) <= most:
        return list(range(len(words))), ""
    kept: set[int] = set()
    for place in sorted(range(len(words)), key=lambda k: -abs(words[k].weight)):
        if len(kept) >= most or words[place].weight == 0.0:
            break
        kept.update(range(max(0, place - _AROUND), min(len(words), place + _AROUND + 1)))
    places = sorted(kept) or list(range(most))
    return places, f"shown: {len(places):,} of {len(words):,} words, those around the strongest; … is the rest"
