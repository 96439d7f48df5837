"""Shared layout of all views: node positions of the graph, colors, and excerpts of long texts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mpad.explain.explanation import EdgeWeight, Explanation, WordWeight

SUPPORTS, OPPOSES = (43, 131, 203), (230, 121, 30)  # blue and orange, which color-blind readers can distinguish
FAINT = 0.02  # in pictures, weights below this share of the strongest stay uncolored
MAX_NODES = 60  # more nodes are not readable
_ITERATIONS = 300
_CONTEXT = 20  # words on each side of a strong word


@dataclass(frozen=True)
class Node:
    """Word of the graph, at coordinates between 0 and 1."""

    word: str
    weight: float  # sum over its occurrences
    spans: tuple[tuple[int, int], ...]
    x: float
    y: float


@dataclass(frozen=True)
class Drawing:
    """Graph with the positions of its nodes."""

    nodes: tuple[Node, ...]
    edges: tuple[tuple[int, int, EdgeWeight], ...]  # indices of source and target in `nodes`
    n_words: int  # distinct words of the document, including those not drawn

    @property
    def note(self) -> str:
        """Remark on the words that were left out; empty if all are drawn."""
        if len(self.nodes) == self.n_words:
            return ""
        return f"drawn: the {len(self.nodes)} of {self.n_words:,} words with the largest weights, alone or in pairs"


def draw(explanation: Explanation, most: int = MAX_NODES) -> Drawing:
    """Lay out the words with the largest weights, alone or in a pair, and the edges between them."""
    own = {word: [explanation.words[k] for k in places] for word, places in explanation.places().items()}
    weights = {word: sum(one.weight for one in occurrences) for word, occurrences in own.items()}
    chosen = _select_words(explanation, weights, most)
    number = {word: place for place, word in enumerate(chosen)}
    merged: dict[tuple[str, str], EdgeWeight] = {}  # merges the graphs of several sentences
    for edge in explanation.edges:
        if edge.source in number and edge.target in number:
            pair = edge.source, edge.target
            seen = merged.get(pair)
            merged[pair] = edge if seen is None else _merge(seen, edge)
    edges = [(number[a], number[b], edge) for (a, b), edge in merged.items()]
    places = _place_nodes(len(chosen), [(a, b) for a, b, _ in edges])
    nodes = [
        Node(word, weights[word], tuple((one.start, one.end) for one in own[word]), float(x), float(y))
        for word, (x, y) in zip(chosen, places, strict=True)
    ]
    return Drawing(tuple(nodes), tuple(edges), len(own))


def _merge(a: EdgeWeight, b: EdgeWeight) -> EdgeWeight:
    return EdgeWeight(a.source, a.target, a.count + b.count, a.spans + b.spans, a.weight + b.weight)


def _select_words(explanation: Explanation, weights: dict[str, float], most: int) -> list[str]:
    """Return words in text order; of too many, those with the largest weights, alone or in a pair."""
    if len(weights) <= most:
        return list(weights)
    top_word = max(map(abs, weights.values())) or 1.0
    top_edge = max((abs(edge.weight) for edge in explanation.edges), default=0.0) or 1.0
    score = {word: abs(weight) / top_word for word, weight in weights.items()}
    for edge in explanation.edges:
        for end in (edge.source, edge.target):
            score[end] = max(score[end], abs(edge.weight) / top_edge)
    kept = set(sorted(score, key=lambda word: -score[word])[:most])
    return [word for word in weights if word in kept]


def _place_nodes(n: int, edges: Sequence[tuple[int, int]]) -> NDArray[np.float64]:
    """Return node positions in 0 … 1, (n, 2), by Fruchterman and Reingold's forces from a circle in text order."""
    if n == 0:
        return np.zeros((0, 2))
    angle = 2 * np.pi * np.arange(n) / n
    place = np.stack([np.cos(angle), np.sin(angle)], axis=1) * (0.8 + 0.2 * (np.arange(n) % 2))[:, None]
    ideal = 1.8 / np.sqrt(n)
    pairs = np.array(edges, np.int64).reshape(-1, 2)
    for round_number in range(_ITERATIONS):
        apart = place[:, None] - place[None]
        distance = np.sqrt((apart**2).sum(-1)) + 1e-9
        push = (apart * (ideal**2 / distance**2)[..., None]).sum(1)
        along = place[pairs[:, 1]] - place[pairs[:, 0]]
        pull = along * (np.sqrt((along**2).sum(-1, keepdims=True)) / ideal)
        np.add.at(push, pairs[:, 0], pull)
        np.subtract.at(push, pairs[:, 1], pull)
        push -= 0.4 * place  # keeps disconnected parts in the picture
        length = np.sqrt((push**2).sum(-1, keepdims=True)) + 1e-9
        heat = 0.1 * (1 - round_number / _ITERATIONS)
        place = place + push / length * np.minimum(length, heat)
    low, size = place.min(0), np.ptp(place, axis=0)
    return np.asarray(np.where(size > 1e-9, (place - low) / np.maximum(size, 1e-9), 0.5))


def scale_weights(weights: Iterable[float]) -> list[float]:
    """Return the weights as shares of the largest absolute one, from −1 to 1."""
    own = list(weights)
    largest = max(map(abs, own), default=0.0) or 1.0
    return [weight / largest for weight in own]


def blend_color(share: float, background: tuple[int, int, int]) -> tuple[int, int, int]:
    """Return the color of a share, laid over a background."""
    color = SUPPORTS if share >= 0 else OPPOSES
    red, green, blue = (round(b + (c - b) * min(abs(share), 1.0)) for c, b in zip(color, background, strict=True))
    return red, green, blue


def excerpt_words(words: Sequence[WordWeight], most: int) -> tuple[list[int], str]:
    """Return the indices of the words to show, all or those around the strongest, and a note on what is left out."""
    if len(words) <= most:
        return list(range(len(words))), ""
    kept: set[int] = set()
    for place in sorted(range(len(words)), key=lambda k: -abs(words[k].weight)):
        if len(kept) >= most or words[place].weight == 0.0:
            break
        kept.update(range(max(0, place - _CONTEXT), min(len(words), place + _CONTEXT + 1)))
    places = sorted(kept) or list(range(most))
    return places, f"shown: {len(places):,} of {len(words):,} words, those around the strongest; … is the rest"
