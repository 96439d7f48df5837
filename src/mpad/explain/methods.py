"""Explanation methods by name."""

from mpad.errors import InputError
from mpad.explain.attention import attention_weights
from mpad.explain.document import OCCURRENCE, PartWeights, TracedDocument
from mpad.explain.gradients import gradient_weights
from mpad.explain.occlusion import occlusion_weights
from mpad.registry import METHODS

MEANINGS = {
    "gradients": "Contribution of each word to the prediction",
    "occlusion": "Change of the prediction without each word",
    "attention": "Attention of the network",
}


def check_method(method: str) -> None:
    """Raise InputError for an unknown method."""
    if method not in METHODS:
        raise InputError(f"no method '{method}' (known: {', '.join(METHODS)})")


def weigh(document: TracedDocument, column: int, method: str, unit: str = OCCURRENCE) -> PartWeights:
    """Return the weights of a document's parts for a class; `unit` is the part that occlusion removes at a time.

    Gradients and attention ignore `unit`: they weigh words as the network reads them, all occurrences at once.
    """
    if method == "gradients":
        return gradient_weights(document, column)
    return occlusion_weights(document, column, unit) if method == "occlusion" else attention_weights(document)
