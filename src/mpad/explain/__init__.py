"""Label → why."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from mpad.errors import InputError
from mpad.explain.assemble import assemble, optional
from mpad.explain.document import TracedDocument, trace_document
from mpad.explain.explanation import DEFAULT, EdgeWeight, Explanation, SentenceWeight, WordWeight
from mpad.explain.methods import METHODS, check_method, weigh
from mpad.explain.occlusion import log_odds
from mpad.explain.sequence import explain_by_attention
from mpad.explain.units import OCCURRENCE, WORD_UNITS, check_unit
from mpad.explain.weights import PartWeights
from mpad.pipeline.document_model import DocumentModel
from mpad.pipeline.text_model import TextModel

_MANY_UNKNOWN = 0.3  # share of words that is worth a note

__all__ = ["DEFAULT", "METHODS", "EdgeWeight", "Explanation", "SentenceWeight", "WordWeight", "explain"]


def explain(
    model: TextModel,
    text: str,
    label: Any = None,
    method: str = DEFAULT,
    without: Collection[int] = (),
    unit: str = OCCURRENCE,
) -> Explanation:
    """Explain the model's answer on a text, for one class (by default the likeliest).

    `without` some of its words, by their number in the text, it is the answer on what is left that is explained.
    By occlusion, `unit` is what is taken out at a time: one "occurrence" of a word, or the "word" everywhere.
    """
    check_method(method)
    check_unit(unit, WORD_UNITS)
    if not isinstance(text, str):
        raise InputError(f"expected one text to explain, found {type(text).__name__}")
    if not isinstance(model, DocumentModel):
        if method != "attention":
            raise InputError(f"a '{model.kind}' can be explained by attention alone so far: method='attention'")
        return explain_by_attention(model, text, None if label is None else _column(model, label))
    document = trace_document(model, text, without)
    output = model.answer(document.graphs)
    probabilities = model.labels.probabilities(output.logits)[0]
    column = int(probabilities.argmax()) if label is None else _column(model, label)
    parts = _noted(document, weigh(document, column, method, unit))
    edges = _edges(document, parts)
    explanation = assemble(text, document.tokens, model.labels, probabilities, column, method, parts, edges)
    total = float(log_odds(output.logits, column, model.labels.multilabel)[0])
    known = zip(explanation.words, document.known.tolist(), strict=True)
    words = tuple(replace(word, known=own) for word, own in known)
    baseline = None if parts.growth is None else total - parts.growth
    return replace(explanation, words=words, total=total, baseline=baseline)


def _column(model: TextModel, label: Any) -> int:
    result = [k for k, known in enumerate(model.labels.classes.tolist()) if known == label or str(known) == str(label)]
    if not result:
        known = ", ".join(map(str, model.labels.classes))
        raise InputError(f"no class '{label}' to explain (known: {known})")
    return result[0]


def _edges(document: TracedDocument, parts: PartWeights) -> tuple[EdgeWeight, ...]:
    """Edges by the words at their first place: of unknown words, several may share a node."""
    spans, words = document.tokens.spans, document.tokens.words
    of_node = dict(zip(reversed(document.node_of.tolist()), reversed(words), strict=True))
    ends = zip(*(nodes.tolist() for nodes in document.edge_nodes), strict=True)
    counts, weights = document.graphs.weight.tolist(), parts.edges.tolist()
    numbers = zip(weights, optional(parts.edge_potentials, len(weights)), strict=True)
    edges = []
    for (u, v), count, places, own in zip(ends, counts, document.edge_places, numbers, strict=True):
        source, target = (words[k] for k in places[0]) if places else (of_node[u], of_node[v])
        edges.append(EdgeWeight(source, target, count, tuple((spans[a], spans[b]) for a, b in places), *own))
    return tuple(edges)


def _noted(document: TracedDocument, parts: PartWeights) -> PartWeights:
    """Add a note about words that the model does not know, cannot tell apart, or does not read."""
    words = document.tokens.words
    shared = len(set(words)) - len(set(document.ids.tolist()))
    notes = [parts.note] if parts.note else []
    if not words:
        notes.append("the model reads no word of this document: the label is that of an empty one")
    unknown = int((~document.known).sum())
    if words and unknown >= _MANY_UNKNOWN * len(words):
        notes.append(f"{unknown:,} of {len(words):,} words are not in the model's vocabulary")
    if words and shared:
        notes.append(f"{shared:,} unknown words share a row, and so a node, with another one")
    return replace(parts, note="; ".join(notes))
