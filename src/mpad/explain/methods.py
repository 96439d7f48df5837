"""Explanation methods by name."""

from collections.abc import Callable

from mpad.errors import InputError
from mpad.explain.attention import attention_weights
from mpad.explain.document import OCCURRENCE, PartWeights, TracedDocument
from mpad.explain.gradients import gradient_weights
from mpad.explain.occlusion import occlusion_weights
from mpad.explain.shapley import shapley_weights
from mpad.registry import METHODS

MEANINGS = {
    "gradients": "Contribution of each word to the prediction",
    "occlusion": "Change of the prediction without each word",
    "attention": "Attention of the network",
    "shapley": "Contribution of each word to the prediction, exact",
}
_WEIGH: dict[str, Callable[[TracedDocument, int, str], PartWeights]] = {
    "gradients": lambda document, column, unit: gradient_weights(document, column),
    "occlusion": occlusion_weights,
    "attention": lambda document, column, unit: attention_weights(document),
    "shapley": lambda document, column, unit: shapley_weights(document, column),
}


def check_method(method: str) -> None:
    """Raise InputError for an unknown method."""
    if method not in METHODS:
        raise InputError(f"no method '{method}' (known: {', '.join(METHODS)})")


def weigh(document: TracedDocument, column: int, method: str, unit: str = OCCURRENCE) -> PartWeights:
    """Return the weights of a document's parts for a class; `unit` is the part that occlusion removes at a time.

    The other methods ignore `unit`: gradients and attention weigh words as the network reads them, all occurrences at
    once, Shapley values each occurrence.
    """
    return _WEIGH[method](document, column, unit)
