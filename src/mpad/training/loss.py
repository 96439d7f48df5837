"""What is minimised, and what is counted as right."""

import torch
from torch import Tensor
from torch.nn import functional


def document_losses(logits: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy of each document: softmax for class numbers, a sigmoid a column for indicators: (…, documents)."""
    if targets.ndim == logits.ndim:
        return functional.binary_cross_entropy_with_logits(logits, targets, reduction="none").mean(-1)
    losses = functional.cross_entropy(logits.flatten(0, -2), targets.flatten(), reduction="none")
    return losses.view(targets.shape)


def weighted_loss(logits: Tensor, targets: Tensor, weights: Tensor, total: Tensor | None = None) -> Tensor:
    """Weighted mean of the documents' losses: (), or (models,).

    `total` is the sum of all weights, where these documents are a share of a batch that several processes see.
    """
    total = (weights.sum(-1) if total is None else total).clamp(min=torch.finfo(weights.dtype).tiny)
    return (document_losses(logits, targets) * weights).sum(-1) / total


def rightness(logits: Tensor, targets: Tensor) -> Tensor:
    """1 for a right document; of many labels a document, the share of right cells: (…, documents)."""
    if targets.ndim == logits.ndim:
        return ((logits > 0) == (targets > 0.5)).float().mean(-1)
    return (logits.argmax(-1) == targets).float()
