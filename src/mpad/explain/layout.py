"""Where to draw the nodes of a graph of words: forces on all pairs, the same picture every time."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mpad.explain.explanation import EdgeWeight, Explanation

MOST_NODES = 60  # more is no picture
_ROUNDS = 300


@dataclass(frozen=True)
class Node:
    """A word of the graph, somewhere between 0 and 1 both ways."""

    word: str
    weight: float  # of all its occurrences
    spans: tuple[tuple[int, int], ...]
    x: float
    y: float


@dataclass(frozen=True)
class Drawing:
    """A graph ready to be drawn."""

    nodes: tuple[Node, ...]
    edges: tuple[tuple[int, int, EdgeWeight], ...]  # source and target among the nodes
    n_words: int  # distinct words of the document, drawn or not

    @property
    def note(self) -> str:
        """What was left out, if anything."""
        if len(self.nodes) == self.n_words:
            return ""
        return f"drawn: the {len(self.nodes)} of {self.n_words:,} words that weigh most, alone or in pairs"


def draw(explanation: Explanation, most: int = MOST_NODES) -> Drawing:
    """Place the words that weigh most, alone or in a pair, and the edges between them."""
    own = {word: [explanation.words[k] for k in places] for word, places in explanation.places().items()}
    weights = {word: sum(one.weight for one in result) for word, result in own.items()}
    chosen = _strongest(explanation, weights, most)
    number = {word: place for place, word in enumerate(chosen)}
    merged: dict[tuple[str, str], EdgeWeight] = {}  # of several sentences' graphs, one
    for edge in explanation.edges:
        if edge.source in number and edge.target in number:
            pair = edge.source, edge.target
            seen = merged.get(pair)
            merged[pair] = edge if seen is None else _added(seen, edge)
    edges = [(number[a], number[b], edge) for (a, b), edge in merged.items()]
    places = _settle(len(chosen), [(a, b) for a, b, _ in edges])
    nodes = [
        Node(word, weights[word], tuple((one.start, one.end) for one in own[word]), float(x), float(y))
        for word, (x, y) in zip(chosen, places, strict=True)
    ]
    return Drawing(tuple(nodes), tuple(edges), len(own))


def _added(a: EdgeWeight, b: EdgeWeight) -> EdgeWeight:
    return EdgeWeight(a.source, a.target, a.count + b.count, a.spans + b.spans, a.weight + b.weight)


def _strongest(explanation: Explanation, weights: dict[str, float], most: int) -> list[str]:
    """Words in the order of the text; of many, those that weigh most themselves or in one of their pairs."""
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


def _settle(n: int, edges: Sequence[tuple[int, int]]) -> NDArray[np.float64]:
    """Fruchterman & Reingold's forces, starting from a circle in the order of the text: (n, 2) within 0 … 1."""
    if n == 0:
        return np.zeros((0, 2))
    angle = 2 * np.pi * np.arange(n) / n
    place = np.stack([np.cos(angle), np.sin(angle)], axis=1) * (0.8 + 0.2 * (np.arange(n) % 2))[:, None]
    ideal = 1.8 / np.sqrt(n)
    pairs = np.array(edges, np.int64).reshape(-1, 2)
    for round_number in range(_ROUNDS):
        apart = place[:, None] - place[None]
        distance = np.sqrt((apart**2).sum(-1)) + 1e-9
        push = (apart * (ideal**2 / distance**2)[..., None]).sum(1)
        along = place[pairs[:, 1]] - place[pairs[:, 0]]
        pull = along * (np.sqrt((along**2).sum(-1, keepdims=True)) / ideal)
        np.add.at(push, pairs[:, 0], pull)
        np.subtract.at(push, pairs[:, 1], pull)
        push -= 0.4 * place  # keeps parts without edges in the picture
        length = np.sqrt((push**2).sum(-1, keepdims=True)) + 1e-9
        heat = 0.1 * (1 - round_number / _ROUNDS)
        place = place + push / length * np.minimum(length, heat)
    low, size = place.min(0), np.ptp(place, axis=0)
    return np.asarray(np.where(size > 1e-9, (place - low) / np.maximum(size, 1e-9), 0.5))
