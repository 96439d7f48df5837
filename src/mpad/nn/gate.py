"""COMBINE, equations 5 and 6: how a node takes in its message."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from mpad.nn import compiled, kernels
from mpad.nn.compiled import update as by_strips
from mpad.nn.compiled.update import Gate, Hear
from mpad.nn.linear import Linear, add_product_, weight_and_bias_gradient, weight_gradient


class GatedUpdate(nn.Module):
    """The paper's gated recurrent unit (eq. 6), which resets BEFORE the linear map.

    R = σ(W_R M + U_R H + b_R)
    Z = σ(W_Z M + U_Z H + b_Z)
    C = tanh(W M + U (R ⊙ H) + b)
    H' = (1 − Z) ⊙ H + Z ⊙ C

    H, M, H': ([models,] nodes, width). `nn.GRUCell` resets after the map, R ⊙ (U H): another function. The three
    products with M are one matrix product, and so are the two gates' with H.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self.from_message = Linear(width, 3 * width)  # W_R, W_Z, W and the biases
        self.from_state = Linear(width, 2 * width, bias=False)  # U_R, U_Z
        self.from_reset = Linear(width, width, bias=False)  # U

    def weights(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """What `update_forward` takes: the biases, W, the gates' U, and U."""
        return self.from_message.bias, self.from_message.weight, self.from_state.weight, self.from_reset.weight

    def forward(self, h: Tensor, m: Tensor) -> Tensor:
        """H, M → H'."""
        updated: Tensor = _Update.apply(h, m, None, None, *self.weights())  # type: ignore[no-untyped-call]
        return updated

    def hearing(self, h: Tensor, x: Tensor, last: Linear) -> Tensor:
        """H, X → H' with M = X W₂ + b₂, the last map of an MLP: with it in front, a GPU needs no pass for M."""
        updated: Tensor = _Update.apply(h, x, last.weight, last.bias, *self.weights())  # type: ignore[no-untyped-call]
        return updated


Kept = tuple[Tensor, Tensor, Tensor | None]  # M; R, Z, C side by side; R ⊙ H, if it is worth keeping


def update_forward(h: Tensor, x: Tensor, hear: Hear | None, gate: Gate) -> tuple[Tensor, Kept]:
    """Equation 6: H', and what its derivative needs. M is X where there is no map before it."""
    if _in_one_kernel(h):
        from mpad.nn.kernels.gate import update_forward as on_gpu

        updated, *kept = on_gpu(h, x, hear, gate)
        return updated, (kept[0], kept[1], kept[2])
    if compiled.run_on(h, (x, *gate) if hear is None else (x, *hear[:2], *gate)):
        updated, m, rzc = by_strips.update_forward(h, x, hear, gate)
        return updated, (m, rzc, None)
    m = x
    if hear is not None:
        w2, b2, relu = hear
        m = (x @ w2.mT).add_(b2.unsqueeze(-2))
        m = m.relu_() if relu else m
    bias, w, u, u_reset = gate
    width = h.shape[-1]
    rzc = (m @ w.mT).add_(bias.unsqueeze(-2))  # addmm would first write the bias into every row
    gates, c = rzc.split((2 * width, width), dim=-1)
    add_product_(gates, h, u.mT).sigmoid_()
    reset, update = gates.chunk(2, dim=-1)
    reset_h = reset * h
    add_product_(c, reset_h, u_reset.mT).tanh_()
    return torch.lerp(h, c, update), (m, rzc, reset_h)


@dataclass(frozen=True)
class UpdateGradients:
    """Gradients of an update, by what they are of."""

    h: Tensor
    x: Tensor
    before: Tensor | None  # b, where X = ReLU(· + b); `x` is then the gradient of what stands in the brackets
    hear: tuple[Tensor | None, Tensor | None]  # W₂, b₂
    gate: tuple[Tensor | None, ...]


def update_backward(
    g: Tensor, h: Tensor, x: Tensor, kept: Kept, hear: Hear | None, gate: Gate, before: bool = False
) -> UpdateGradients:
    """The derivative of `update_forward`, which gave `kept`. With `before`, X = ReLU(· + b)."""
    m, rzc, reset_h = kept
    if reset_h is None:
        d_h, d_x, of_before, *of = by_strips.update_backward(g, h, x, m, rzc, hear, gate, before)
        heard = (None, None) if hear is None else (of[0], of[1])
        return UpdateGradients(d_h, d_x, of_before if before else None, heard, tuple(of[2:]))
    if _in_one_kernel(h):
        from mpad.nn.kernels.gate import update_backward as on_gpu
        from mpad.nn.kernels.gate_weights import gate_weight_gradients

        d_rzc, d_h, d_m, d_x, d_before = on_gpu(g, h, x, m, rzc, hear, gate[1:], before)
        of_gate, of_hear = gate_weight_gradients(d_rzc, d_m, m, h, reset_h, None if hear is None else x)
        return UpdateGradients(d_h, d_x, d_before, of_hear, of_gate)
    d_rzc, d_h, d_m, d_x, d_before = _gradients(g, h, x, m, rzc, hear, gate[1:], before)
    d_gates, d_c = d_rzc.split((2 * h.shape[-1], h.shape[-1]), dim=-1)
    d_w, d_bias = weight_and_bias_gradient(d_rzc, m)
    d_hear = (None, None) if hear is None else weight_and_bias_gradient(d_m, x)
    d_gate = d_bias, d_w, weight_gradient(d_gates, h), weight_gradient(d_c, reset_h)
    return UpdateGradients(d_h, d_x, d_before, d_hear, d_gate)


def _in_one_kernel(h: Tensor) -> bool:
    if not kernels.run_on(h):
        return False
    from mpad.nn.kernels.gate import WIDEST

    return h.shape[-1] <= WIDEST


def _gradients(
    g: Tensor,
    h: Tensor,
    x: Tensor,
    m: Tensor,
    rzc: Tensor,
    hear: Hear | None,
    maps: tuple[Tensor, ...],
    before: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor | None]:
    """Gradients of the pre-activations of R, Z, C; of H; of M before its ReLU; of X; of a bias before X."""
    w, u, u_reset = maps
    r, z, c = rzc.chunk(3, dim=-1)
    d_rzc = torch.empty_like(rzc)
    d_r, d_z, d_c = d_rzc.chunk(3, dim=-1)
    gz = g * z
    torch.ops.aten.tanh_backward(gz, c, grad_input=d_c)
    torch.ops.aten.sigmoid_backward((c - h).mul_(g), z, grad_input=d_z)
    d_reset_h = d_c @ u_reset
    torch.ops.aten.sigmoid_backward(d_reset_h * h, r, grad_input=d_r)
    d_h = torch.sub(g, gz, out=gz).addcmul_(d_reset_h, r)
    add_product_(d_h, d_rzc[..., : 2 * h.shape[-1]], u)
    d_m = d_rzc @ w
    if hear is None:
        return d_rzc, d_h, d_m, d_m, None
    w2, _, relu = hear
    if relu:
        torch.ops.aten.threshold_backward(d_m, m, 0, grad_input=d_m)
    d_x = d_m @ w2
    if before:
        torch.ops.aten.threshold_backward(d_x, x, 0, grad_input=d_x)
    return d_rzc, d_h, d_m, d_x, d_x.sum(-2) if before else None


class _Update(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, h: Tensor, x: Tensor, w2: Tensor | None, b2: Tensor | None, *gate: Tensor) -> Tensor:
        hear = None if w2 is None or b2 is None else (w2, b2, False)
        updated, kept = update_forward(h, x, hear, gate)  # type: ignore[arg-type]
        ctx.save_for_backward(h, x, *kept, w2, b2, *gate)
        return updated

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        h, x, m, rzc, reset_h, w2, b2, *gate = ctx.saved_tensors
        hear = None if w2 is None else (w2, b2, False)
        d = update_backward(gradients[0], h, x, (m, rzc, reset_h), hear, tuple(gate))
        return d.h, d.x, *d.hear, *d.gate


class NeighboursOnly(nn.Module):
    """The ablation "neighbours only": H' = M; a node forgets itself. H, M, H': (nodes, width)."""

    def forward(self, h: Tensor, m: Tensor) -> Tensor:
        """H, M → M."""
        return m
