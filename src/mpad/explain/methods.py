"""The methods of explanation by name."""

from mpad.errors import InputError
from mpad.explain.attention import attention_weights
from mpad.explain.document import TracedDocument
from mpad.explain.gradients import gradient_weights
from mpad.explain.occlusion import occlusion_weights
from mpad.explain.units import OCCURRENCE
from mpad.explain.weights import PartWeights

METHODS = ("gradients", "occlusion", "attention")


def check_method(method: str) -> None:
    """Refuse a name that is not known."""
    if method not in METHODS:
        raise InputError(f"no method '{method}' (known: {', '.join(METHODS)})")


def weigh(document: TracedDocument, column: int, method: str, unit: str = OCCURRENCE) -> PartWeights:
    """Weights of a document's parts for a class, by a method's name; `unit` is what occlusion takes out at a time.

    Gradients and attention weigh words as the network reads them, all occurrences at once, whatever the unit.
    """
    if method == "gradients":
        return gradient_weights(document, column)
    parts = attention_weights(document, document.model.answer(document.graphs))
    return parts if method == "attention" else occlusion_weights(document, column, parts, unit)
