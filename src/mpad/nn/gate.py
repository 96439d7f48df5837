"""COMBINE, equations 5 and 6: how a node takes in its message."""

from typing import Any

import torch
from torch import Tensor, nn


class GatedUpdate(nn.Module):
    """The paper's gated recurrent unit (eq. 6), which resets BEFORE the linear map.

    R = σ(W_R M + U_R H + b_R)
    Z = σ(W_Z M + U_Z H + b_Z)
    C = tanh(W M + U (R ⊙ H) + b)
    H' = (1 − Z) ⊙ H + Z ⊙ C

    H, M, H': (nodes, width). `nn.GRUCell` resets after the map, R ⊙ (U H): another function. The three products
    with M are one matrix product, and so are the two gates' with H.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self.from_message = nn.Linear(width, 3 * width)  # W_R, W_Z, W and the biases
        self.from_state = nn.Linear(width, 2 * width, bias=False)  # U_R, U_Z
        self.from_reset = nn.Linear(width, width, bias=False)  # U

    def forward(self, h: Tensor, m: Tensor) -> Tensor:
        """H, M → H'."""
        if h.device.type == "cpu" and h.dtype == m.dtype and not torch.is_autocast_enabled("cpu"):
            weights = self.from_message.weight, self.from_state.weight, self.from_reset.weight
            updated: Tensor = _GateInPlace.apply(h, m, self.from_message.bias, *weights)  # type: ignore[no-untyped-call]
            return updated
        gates, candidate = self.from_message(m).split((2 * self.width, self.width), dim=1)
        reset, update = torch.sigmoid(gates + self.from_state(h)).split(self.width, dim=1)
        candidate = torch.tanh(candidate + self.from_reset(reset * h))
        return torch.lerp(h.to(candidate.dtype), candidate, update.to(candidate.dtype))


class _GateInPlace(torch.autograd.Function):
    """The same function with its derivative by hand: R, Z and C share one array, and passes over it are few.

    On a CPU, automatic differentiation of the lines above spends twice as long on copies as on products.
    """

    @staticmethod
    def forward(ctx: Any, h: Tensor, m: Tensor, bias: Tensor, w: Tensor, u: Tensor, u_reset: Tensor) -> Tensor:
        width = h.shape[1]
        rzc = (m @ w.t()).add_(bias)  # (nodes, 3 · width); addmm would first write the bias into every row
        gates, c = rzc[:, : 2 * width], rzc[:, 2 * width :]
        gates.addmm_(h, u.t()).sigmoid_()
        reset_h = gates[:, :width] * h
        c.addmm_(reset_h, u_reset.t()).tanh_()
        ctx.save_for_backward(h, m, rzc, reset_h, w, u, u_reset)
        return torch.lerp(h, c, gates[:, width:])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, ...]:
        (g,) = gradients
        h, m, rzc, reset_h, w, u, u_reset = ctx.saved_tensors
        r, z, c = rzc.chunk(3, dim=1)
        d_rzc = torch.empty_like(rzc)
        d_r, d_z, d_c = d_rzc.chunk(3, dim=1)
        gz = g * z
        torch.ops.aten.tanh_backward(gz, c, grad_input=d_c)
        torch.ops.aten.sigmoid_backward((c - h).mul_(g), z, grad_input=d_z)
        d_h = g - gz
        d_reset_h = d_c @ u_reset
        torch.ops.aten.sigmoid_backward(d_reset_h * h, r, grad_input=d_r)
        d_h.addcmul_(d_reset_h, r)
        d_gates = d_rzc[:, : 2 * h.shape[1]]
        d_h.addmm_(d_gates, u)
        return d_h, d_rzc @ w, d_rzc.sum(0), d_rzc.t() @ m, d_gates.t() @ h, d_c.t() @ reset_h


class NeighboursOnly(nn.Module):
    """The ablation "neighbours only": H' = M; a node forgets itself. H, M, H': (nodes, width)."""

    def forward(self, h: Tensor, m: Tensor) -> Tensor:
        """H, M → M."""
        return m
