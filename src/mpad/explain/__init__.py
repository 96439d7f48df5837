"""Explanations: the words, word pairs and sentences behind a prediction."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from mpad.errors import InputError
from mpad.explain.attention import sequence_attention
from mpad.explain.counterfactual import Counterfactual, find_counterfactual
from mpad.explain.document import (
    OCCURRENCE,
    WORD_UNITS,
    PartWeights,
    TracedDocument,
    Weights,
    check_unit,
    log_odds,
    trace_document,
)
from mpad.explain.explanation import DEFAULT, EdgeWeight, Explanation, SentenceWeight, WordWeight
from mpad.explain.methods import check_method, weigh
from mpad.inference.pipeline import Pipeline
from mpad.registry import METHODS
from mpad.text.tokenizer import Tokens

_UNKNOWN_SHARE = 0.3  # of the words; above it the explanation gets a note

__all__ = [
    "DEFAULT",
    "METHODS",
    "Counterfactual",
    "EdgeWeight",
    "Explanation",
    "SentenceWeight",
    "WordWeight",
    "explain",
    "find_counterfactual",
]


def explain(
    model: Pipeline,
    text: str,
    label: Any = None,
    method: str = DEFAULT,
    without: Collection[int] = (),
    unit: str = OCCURRENCE,
    against: Any = None,
) -> Explanation:
    """Explain the prediction for a text.

    Parameters
    ----------
    model : Pipeline
        The model of a fitted classifier: `classifier.model_`.
    text : str
        The document.
    label : object, optional
        Class to explain; the most probable one by default.
    method : {"gradients", "occlusion", "attention", "shapley"}, default="gradients"
        How parts are weighed; "shapley" is exact, for texts of up to 12 words. Baselines without a graph have attention
        only.
    without : collection of int, default=()
        Indices of word occurrences to remove from the text before it is explained.
    unit : {"occurrence", "word"}, default="occurrence"
        Occlusion only: remove one occurrence of a word at a time, or all of them.
    against : object, optional
        Explain why the label rather than this class; by default, rather than any other.

    Returns
    -------
    Explanation
        The weights of words, edges and sentences.

    Raises
    ------
    InputError
        If an argument is unknown to the model, or the model has nothing to explain.

    """
    check_method(method)
    check_unit(unit, WORD_UNITS)
    if not isinstance(text, str):
        raise InputError(f"expected one text to explain, found {type(text).__name__}")
    if model.kind != "mpad":
        if against is not None:
            raise InputError(f"a '{model.kind}' cannot be explained against a class")
        if method != "attention":
            raise InputError(f"a '{model.kind}' can be explained by attention only: method='attention'")
        tokens, packed = model.tokenizer.trace(text), model.pack([text])
        answer = model.answer(packed)
        parts = sequence_attention(model, tokens, packed, answer)
        return _assemble(model, text, tokens, answer.logits, _find_column(model, answer.logits, label), method, parts)
    document = trace_document(model, text, without)
    logits = model.answer(document.graphs).logits
    column = _find_column(model, logits, label)
    if against is not None:
        document = replace(document, against=_other_column(model, against, column, method))
    parts = _add_notes(document, weigh(document, column, method, unit))
    explanation = _assemble(model, text, document.tokens, logits, column, method, parts, document.against)
    known = document.known.tolist()
    words = tuple(replace(word, known=flag) for word, flag in zip(explanation.words, known, strict=True))
    return replace(explanation, words=words, edges=_weigh_edges(document, parts))


def _find_column(model: Pipeline, logits: NDArray[np.float32], label: Any) -> int:
    """Return the column of the label, by default of the most probable one."""
    if label is None:
        return int(model.labels.probabilities(logits)[0].argmax())
    classes = model.labels.classes.tolist()
    columns = [k for k, known in enumerate(classes) if known == label or str(known) == str(label)]
    if not columns:
        raise InputError(f"no class '{label}' to explain (known: {', '.join(map(str, classes))})")
    return columns[0]


def _other_column(model: Pipeline, against: Any, column: int, method: str) -> int:
    """Return the column of the class to explain against."""
    if model.labels.multilabel or method == "attention":
        what = "attention is the same for all classes" if method == "attention" else "labels do not exclude each other"
        raise InputError(f"nothing to explain against '{against}': {what}")
    other = _find_column(model, np.zeros((1, len(model.labels)), np.float32), against)
    if other == column:
        raise InputError(f"'{against}' is the class to explain: name another one to explain it against")
    return other


def _assemble(
    model: Pipeline,
    text: str,
    tokens: Tokens,
    logits: NDArray[np.float32],
    column: int,
    method: str,
    parts: PartWeights,
    against: int | None = None,
) -> Explanation:
    """Return the explanation of class `column` with the weights of these words and sentences."""
    classes: list[Any] = model.labels.classes.tolist()
    total = float(log_odds(torch.from_numpy(logits), column, model.labels.multilabel, against)[0])
    probabilities = model.labels.probabilities(logits)
    chosen = tuple(classes[k] for k in model.labels.columns(probabilities)[0])
    sentence_of, spans = np.array(tokens.sentences, np.int64), tokens.spans
    sentences = []
    for number, weight in enumerate(parts.sentences.tolist()):
        members = np.flatnonzero(sentence_of == number)
        sentences.append(SentenceWeight(spans[members[0]][0], spans[members[-1]][1], weight))
    potentials = _list_or_nones(parts.word_potentials, len(tokens.words))
    rows = zip(tokens.words, spans, tokens.sentences, parts.words.tolist(), potentials, strict=True)
    return Explanation(
        text=text,
        label=classes[column],
        predicted=chosen if model.labels.multilabel else chosen[0],
        probabilities=dict(zip(classes, probabilities[0].tolist(), strict=True)),
        method=method,
        words=tuple(WordWeight(word, *span, *numbers) for word, span, *numbers in rows),
        edges=(),
        sentences=tuple(sentences),
        note=parts.note,
        total=total,
        baseline=None if parts.growth is None else total - parts.growth,
        against=None if against is None else classes[against],
        pairs=_list_pairs(parts.pairs),
    )


def _list_pairs(pairs: NDArray[np.float64] | None) -> tuple[tuple[int, int, float], ...]:
    """Return the interactions of pairs of occurrences, the strongest first."""
    if pairs is None:
        return ()
    places = zip(*(ends.tolist() for ends in np.triu_indices(len(pairs), 1)), strict=True)
    listed = [(a, b, float(pairs[a, b])) for a, b in places]
    return tuple(sorted(listed, key=lambda pair: -abs(pair[2])))


def _list_or_nones(weights: Weights | None, n: int) -> list[float | None]:
    return [None] * n if weights is None else weights.tolist()


def _weigh_edges(document: TracedDocument, parts: PartWeights) -> tuple[EdgeWeight, ...]:
    """Return the edges, named by the words at their first place, as several unknown words may share a node."""
    spans, words = document.tokens.spans, document.tokens.words
    of_node = dict(zip(reversed(document.node_of.tolist()), reversed(words), strict=True))
    ends = zip(*(nodes.tolist() for nodes in document.edge_nodes), strict=True)
    counts, weights = document.graphs.weight.tolist(), parts.edges.tolist()
    numbers = zip(weights, _list_or_nones(parts.edge_potentials, len(weights)), strict=True)
    edges = []
    for (u, v), count, places, weight in zip(ends, counts, document.edge_places, numbers, strict=True):
        source, target = (words[k] for k in places[0]) if places else (of_node[u], of_node[v])
        edges.append(EdgeWeight(source, target, count, tuple((spans[a], spans[b]) for a, b in places), *weight))
    return tuple(edges)


def _add_notes(document: TracedDocument, parts: PartWeights) -> PartWeights:
    """Add notes on words that the model does not know, does not distinguish, or does not read."""
    words = document.tokens.words
    shared = len(set(words)) - len(set(document.ids.tolist()))
    notes = [parts.note] if parts.note else []
    if not words:
        notes.append("the model reads no word of this document: the label is that of an empty one")
    unknown = int((~document.known).sum())
    if words and unknown >= _UNKNOWN_SHARE * len(words):
        notes.append(f"{unknown:,} of {len(words):,} words are not in the model's vocabulary")
    if words and shared:
        notes.append(f"{shared:,} unknown words share a row, and so a node, with another one")
    return replace(parts, note="; ".join(notes))
