"""The weights of a module as flat tuples, the form that kernels and their gradients take."""

from typing import NamedTuple

from torch import Tensor, nn

from mpad.model import Attention, BatchNorm, Gate, MessagePassing, Readout


class RoundWeights(NamedTuple):
    """Weights of a round of message passing, (out, in) each; None for the parts that a network does not have."""

    before1: Tensor | None  # MLP before the mean: V₁, c₁, γ, β, V₂, c₂
    before1_bias: Tensor | None
    before_gamma: Tensor | None
    before_beta: Tensor | None
    before2: Tensor | None
    before2_bias: Tensor | None
    w1: Tensor  # MLP of the message: W₁, b₁, γ, β, W₂, b₂
    b1: Tensor
    gamma: Tensor | None
    beta: Tensor | None
    w2: Tensor
    b2: Tensor
    bias: Tensor | None  # gate, as in UpdateWeights; None without a gate
    w: Tensor | None
    u: Tensor | None
    v: Tensor | None


class UpdateWeights(NamedTuple):
    """Weights of a gated update, and of the map that ends the message's MLP; (out, in) each."""

    w2: Tensor | None  # None: the input is the message itself
    b2: Tensor | None
    bias: Tensor  # (3 · width,): of R, Z and C
    w: Tensor  # (3 · width, width): W_R, W_Z, W
    u: Tensor  # (2 · width, width): U_R, U_Z
    v: Tensor  # (width, width): U


def round_weights(module: MessagePassing) -> RoundWeights:
    """Return the weights of a round."""
    before = *_linear(module.before1), *_norm(module.before_norm), *_linear(module.before2)
    message = module.mlp1.weight, module.mlp1.bias, *_norm(module.mlp_norm), module.mlp2.weight, module.mlp2.bias
    return RoundWeights(*before, *message, *((None,) * 4 if module.gate is None else gate_weights(module.gate)))


def gate_weights(gate: Gate) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return bias, W, the gates' U, and U."""
    return gate.from_message.bias, gate.from_message.weight, gate.from_state.weight, gate.from_reset.weight


def attention_weights(readout: Readout) -> list[tuple[Tensor | None, ...]]:
    """Return weight and bias of the dense layer, W_A, its bias, and v, for each round."""
    return [(*_linear(one.dense), *_linear(one.align), one.context.weight) for one in attentions(readout)]


def attentions(readout: Readout) -> list[Attention]:
    """Return the attention of each round."""
    return list(readout.attention)  # type: ignore[arg-type]


def running_averages(norm: nn.Module) -> tuple[Tensor, Tensor]:
    """Return running mean and variance of a batch norm."""
    assert isinstance(norm, BatchNorm) and norm.running_mean is not None and norm.running_var is not None
    return norm.running_mean, norm.running_var


def _linear(module: nn.Linear | None) -> tuple[Tensor | None, Tensor | None]:
    return (None, None) if module is None else (module.weight, module.bias)


def _norm(module: nn.Module) -> tuple[Tensor | None, Tensor | None]:
    return (module.weight, module.bias) if isinstance(module, BatchNorm) else (None, None)
