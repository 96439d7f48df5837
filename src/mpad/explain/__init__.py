"""Label → why."""

from typing import Any

import numpy as np

from mpad.document_model import DocumentModel
from mpad.errors import InputError
from mpad.explain.attention import attention_weights
from mpad.explain.document import Dissected, dissect
from mpad.explain.explanation import EdgeWeight, Explanation, SentenceWeight, WordWeight
from mpad.explain.occlusion import occlusion_weights
from mpad.explain.sequence import explain_by_attention
from mpad.explain.weights import PartWeights
from mpad.text_model import TextModel

__all__ = ["METHODS", "EdgeWeight", "Explanation", "SentenceWeight", "WordWeight", "explain"]

METHODS = ("occlusion", "attention")


def explain(model: TextModel, text: str, label: Any = None, method: str = "occlusion") -> Explanation:
    """Explain the model's answer on a text, for one class (by default the likeliest)."""
    if method not in METHODS:
        raise InputError(f"no method '{method}' (known: {', '.join(METHODS)})")
    if not isinstance(text, str):
        raise InputError(f"expected one text to explain, found {type(text).__name__}")
    if not isinstance(model, DocumentModel):
        if method != "attention":
            raise InputError(f"a '{model.kind}' can be explained by attention alone so far: method='attention'")
        return explain_by_attention(model, text, None if label is None else _column(model, label))
    document = dissect(model, text)
    output = model.answer(document.graphs)
    probabilities = model.labels.probabilities(output.logits)[0]
    column = int(probabilities.argmax()) if label is None else _column(model, label)
    parts = attention_weights(document, output)
    if method == "occlusion":
        parts = occlusion_weights(document, column, parts)
    return _explanation(document, parts, probabilities, column, method)


def _column(model: TextModel, label: Any) -> int:
    found = [k for k, known in enumerate(model.labels.classes.tolist()) if known == label or str(known) == str(label)]
    if not found:
        known = ", ".join(map(str, model.labels.classes))
        raise InputError(f"no class '{label}' to explain (known: {known})")
    return found[0]


def _explanation(
    document: Dissected, parts: PartWeights, probabilities: np.ndarray[Any, Any], column: int, method: str
) -> Explanation:
    labels, tokens = document.model.labels, document.tokens
    classes = labels.classes.tolist()
    chosen = tuple(label for label, p in zip(classes, probabilities, strict=True) if p > 0.5)
    spans = tokens.spans
    source, target = (nodes.tolist() for nodes in document.edge_nodes)
    name = dict(zip(document.node_of.tolist(), tokens.words, strict=True))
    sentences = []
    for number, weight in enumerate(parts.sentences.tolist()):
        members = np.flatnonzero(document.sentence_of == number)
        sentences.append(SentenceWeight(spans[members[0]][0], spans[members[-1]][1], weight))
    return Explanation(
        text=document.text,
        label=classes[column],
        predicted=chosen if labels.multilabel else classes[int(probabilities.argmax())],
        probabilities={label: float(p) for label, p in zip(classes, probabilities, strict=True)},
        method=method,
        words=tuple(
            WordWeight(word, *span, sentence, weight)
            for word, span, sentence, weight in zip(
                tokens.words, spans, tokens.sentences, parts.words.tolist(), strict=True
            )
        ),
        edges=tuple(
            EdgeWeight(name[u], name[v], count, tuple((spans[a], spans[b]) for a, b in places), weight)
            for u, v, count, places, weight in zip(
                source,
                target,
                document.graphs.weight.tolist(),
                document.edge_places,
                parts.edges.tolist(),
                strict=True,
            )
        ),
        sentences=tuple(sentences),
        note=parts.note,
    )
