"""An explanation → what the page draws: words, sentences, and the graph laid out."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mpad.explain.explanation import Explanation


def serialize(model: str, explanation: "Explanation") -> dict[str, Any]:
    """Plain values, as `ExplainResponse` has them."""
    from mpad.explain.layout import draw  # here: it brings torch, which answering does without

    drawing = draw(explanation)
    occurrences = explanation.places()
    many = isinstance(explanation.predicted, tuple)
    predicted = [str(label) for label in (explanation.predicted if many else [explanation.predicted])]
    return {
        "model": model,
        "label": str(explanation.label),
        "predicted": ", ".join(predicted),
        **({"labels": predicted} if many else {}),
        "method": explanation.method,
        "probabilities": {str(label): p for label, p in explanation.probabilities.items()},
        "words": [vars(word) for word in explanation.words],
        "sentences": [vars(sentence) for sentence in explanation.sentences],
        "nodes": [
            {"word": n.word, "weight": n.weight, "x": n.x, "y": n.y, "occurrences": occurrences[n.word]}
            for n in drawing.nodes
        ],
        "edges": [{"source": a, "target": b, "count": e.count, "weight": e.weight} for a, b, e in drawing.edges],
        "keywords": [keyword.text for keyword in explanation.keywords()],
        "phrases": [phrase.text for phrase in explanation.phrases()],
        "summary": [explanation.sentences.index(sentence) for sentence in explanation.summary()],
        "total": explanation.total,
        "baseline": explanation.baseline,
        "note": " ".join(note for note in (explanation.note, drawing.note) if note),
    }
