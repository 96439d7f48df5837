"""The gated update for rows too wide for one kernel: products by cuBLAS, the rest in place.

The backward is explicit, so that sums over rows use `weight_gradient` and few tensors are written.
"""

import torch
from torch import Tensor

from mpad.kernels.cuda.linear import weight_gradient
from mpad.kernels.weights import UpdateWeights

Saved = tuple[Tensor, Tensor, Tensor]  # M; R, Z, C side by side; R ⊙ H


def update_forward(h: Tensor, x: Tensor, weights: UpdateWeights, relu: bool) -> tuple[Tensor, Saved]:
    """Return H' and the tensors that the backward needs."""
    m, width = x, h.shape[-1]
    if weights.w2 is not None and weights.b2 is not None:
        m = (x @ weights.w2.mT).add_(weights.b2.unsqueeze(-2))
        m = m.relu_() if relu else m
    rzc = (m @ weights.w.mT).add_(weights.bias.unsqueeze(-2))
    gates, c = rzc.split((2 * width, width), dim=-1)
    gates.baddbmm_(h, weights.u.mT).sigmoid_()
    reset, update = gates.chunk(2, dim=-1)
    reset_h = reset * h
    c.baddbmm_(reset_h, weights.v.mT).tanh_()
    return torch.lerp(h, c, update), (m, rzc, reset_h)


def update_backward(
    g: Tensor, h: Tensor, x: Tensor, saved: Saved, weights: UpdateWeights, relu: bool, before: bool
) -> tuple[Tensor, Tensor, tuple[Tensor | None, ...], Tensor | None]:
    """Return the gradients of H, X, the weights, and a bias before X, if X is ReLU(· + b)."""
    m, rzc, reset_h = saved
    width = h.shape[-1]
    r, z, c = rzc.chunk(3, dim=-1)
    d_rzc = torch.empty_like(rzc)
    d_r, d_z, d_c = d_rzc.chunk(3, dim=-1)
    gz = g * z
    torch.ops.aten.tanh_backward(gz, c, grad_input=d_c)
    torch.ops.aten.sigmoid_backward((c - h).mul_(g), z, grad_input=d_z)
    d_reset = d_c @ weights.v
    torch.ops.aten.sigmoid_backward(d_reset * h, r, grad_input=d_r)
    d_h = torch.sub(g, gz, out=gz).addcmul_(d_reset, r).baddbmm_(d_rzc[..., : 2 * width], weights.u)
    d_m = d_rzc @ weights.w
    d_x, d_last = d_m, (None, None)
    if weights.w2 is not None:
        if relu:
            torch.ops.aten.threshold_backward(d_m, m, 0, grad_input=d_m)
        d_x, d_last = d_m @ weights.w2, weight_gradient(d_m, x, bias=True)  # type: ignore[assignment]
    if before:
        torch.ops.aten.threshold_backward(d_x, x, 0, grad_input=d_x)
    d_w, d_bias = weight_gradient(d_rzc, m, bias=True)
    d_u, _ = weight_gradient(d_rzc[..., : 2 * width], h, bias=False)
    d_v, _ = weight_gradient(d_rzc[..., 2 * width :], reset_h, bias=False)
    return d_h, d_x, (*d_last, d_bias, d_w, d_u, d_v), d_x.sum(-2) if before else None
