"""The loss of a batch (training/loss.py) together with its gradient."""

import ctypes
from ctypes import Structure
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from mpad import native
from mpad.nn import compiled
from mpad.nn.compiled import at


class _Loss(Structure):
    _fields_ = native.fields("logits weights targets loss d_logits", "n classes")


def computes(logits: Tensor, targets: Tensor, weights: Tensor) -> bool:
    """Whether the compiled pass takes these: one model, a class number a document."""
    numbered = targets.dtype == torch.int64 and logits.ndim == 2 and targets.shape == weights.shape == logits.shape[:1]
    return numbered and compiled.takes(logits) and compiled.takes(weights)


class CompiledLoss(torch.autograd.Function):
    """Σ wᵢ (log Σ exp logitsᵢ − logitᵢ of the target) / Σ wᵢ: (documents, classes) → ()."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
        """The loss."""
        logits, targets, weights = logits.contiguous(), targets.contiguous(), weights.contiguous()
        loss, gradient = logits.new_empty(()), torch.empty_like(logits)
        of = _Loss(*at((logits, weights, targets, loss, gradient)), *logits.shape)
        if not native.library.mpad_loss(ctypes.byref(of)):  # type: ignore[union-attr]
            raise IndexError(f"a target is not one of {logits.shape[1]} classes")
        ctx.save_for_backward(gradient)
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        """Of the logits."""
        (gradient,) = ctx.saved_tensors
        return gradient * gradients[0], None, None
