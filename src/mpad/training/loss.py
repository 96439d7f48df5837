"""Loss and accuracy per document."""

import torch
from torch import Tensor
from torch.nn import functional


def document_losses(logits: Tensor, targets: Tensor) -> Tensor:
    """Return the cross-entropy of each document (…, documents): softmax for class numbers, sigmoids for indicators."""
    if targets.ndim == logits.ndim:
        return functional.binary_cross_entropy_with_logits(logits, targets, reduction="none").mean(-1)
    losses = functional.cross_entropy(logits.flatten(0, -2), targets.flatten(), reduction="none")
    return losses.view(targets.shape)


def weighted_loss(logits: Tensor, targets: Tensor, weights: Tensor, total: Tensor | None = None) -> Tensor:
    """Return the weighted mean of the documents' losses: (), or (models,).

    `total` is the sum of all weights, where these documents are a share of a batch that several processes see.
    """
    total = (weights.sum(-1) if total is None else total).clamp(min=torch.finfo(weights.dtype).tiny)
    return (document_losses(logits, targets) * weights).sum(-1) / total


def rightness(logits: Tensor, targets: Tensor) -> Tensor:
    """Return 1 for a correct document, or the share of correct decisions if multi-label: (…, documents)."""
    if targets.ndim == logits.ndim:
        return ((logits > 0) == (targets > 0.5)).float().mean(-1)
    return (logits.argmax(-1) == targets).float()
