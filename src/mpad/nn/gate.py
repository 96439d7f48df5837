"""COMBINE, equations 5 and 6: how a node takes in its message."""

from typing import Any

import torch
from torch import Tensor, nn

from mpad.nn import kernels
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
        """What `gate_forward` takes: the biases, W, the gates' U, and U."""
        return self.from_message.bias, self.from_message.weight, self.from_state.weight, self.from_reset.weight

    def forward(self, h: Tensor, m: Tensor) -> Tensor:
        """H, M → H'."""
        updated: Tensor = _Gate.apply(h, m, *self.weights())  # type: ignore[no-untyped-call]
        return updated


def gate_forward(
    h: Tensor, m: Tensor, bias: Tensor, w: Tensor, u: Tensor, u_reset: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Equation 6 in few passes: H', then R, Z and C in one array ([models,] nodes, 3 · width), and R ⊙ H."""
    if kernels.run_on(h):
        from mpad.nn.kernels.gate import gate_forward as on_gpu

        return on_gpu(h, m, bias, w, u, u_reset)
    width = h.shape[-1]
    rzc = (m @ w.mT).add_(bias.unsqueeze(-2))  # addmm would first write the bias into every row
    gates, c = rzc.split((2 * width, width), dim=-1)
    add_product_(gates, h, u.mT).sigmoid_()
    reset, update = gates.chunk(2, dim=-1)
    reset_h = reset * h
    add_product_(c, reset_h, u_reset.mT).tanh_()
    return torch.lerp(h, c, update), rzc, reset_h


def gate_backward(
    g: Tensor, h: Tensor, m: Tensor, rzc: Tensor, reset_h: Tensor, w: Tensor, u: Tensor, u_reset: Tensor
) -> tuple[Tensor, Tensor, *tuple[Tensor | None, ...]]:
    """Gradients of `gate_forward` with respect to H, M, the biases, W, the gates' U, and U."""
    if kernels.run_on(h):
        from mpad.nn.kernels.gate import gate_gradients as on_gpu

        d_rzc, d_h = on_gpu(g, h, rzc, u_reset)
    else:
        d_rzc, d_h = _gate_gradients(g, h, rzc, u_reset)
    d_gates, d_c = d_rzc.split((2 * h.shape[-1], h.shape[-1]), dim=-1)
    add_product_(d_h, d_gates, u)
    d_w, d_bias = weight_and_bias_gradient(d_rzc, m)
    return d_h, d_rzc @ w, d_bias, d_w, weight_gradient(d_gates, h), weight_gradient(d_c, reset_h)


def _gate_gradients(g: Tensor, h: Tensor, rzc: Tensor, u_reset: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients of the pre-activations of R, Z, C side by side, and of H, all but its way through the gates' U."""
    r, z, c = rzc.chunk(3, dim=-1)
    d_rzc = torch.empty_like(rzc)
    d_r, d_z, d_c = d_rzc.chunk(3, dim=-1)
    gz = g * z
    torch.ops.aten.tanh_backward(gz, c, grad_input=d_c)
    torch.ops.aten.sigmoid_backward((c - h).mul_(g), z, grad_input=d_z)
    d_reset_h = d_c @ u_reset
    torch.ops.aten.sigmoid_backward(d_reset_h * h, r, grad_input=d_r)
    return d_rzc, torch.sub(g, gz, out=gz).addcmul_(d_reset_h, r)


class _Gate(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, h: Tensor, m: Tensor, bias: Tensor, w: Tensor, u: Tensor, u_reset: Tensor) -> Tensor:
        updated, rzc, reset_h = gate_forward(h, m, bias, w, u, u_reset)
        ctx.save_for_backward(h, m, rzc, reset_h, w, u, u_reset)
        return updated

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        return gate_backward(gradients[0], *ctx.saved_tensors)


class NeighboursOnly(nn.Module):
    """The ablation "neighbours only": H' = M; a node forgets itself. H, M, H': (nodes, width)."""

    def forward(self, h: Tensor, m: Tensor) -> Tensor:
        """H, M → M."""
        return m
