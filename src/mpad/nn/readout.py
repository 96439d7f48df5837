"""What is read out of a graph's states."""

from torch import Tensor, nn

from mpad import ops
from mpad.nn.config import MPADConfig
from mpad.nn.linear import LinearWeights, NormWeights, Uncalled
from mpad.ops import Segments


class AttentionWeights(Uncalled):
    """Weights of the attention over one round's states."""

    def __init__(self, config: MPADConfig) -> None:
        super().__init__()
        width = config.hidden
        self.align = LinearWeights(width, width, bias=config.attention_bias)
        self.context = LinearWeights(width, 1, bias=False)
        self.dense = LinearWeights(width, width) if config.attention_dense else None

    def tensors(self) -> list[Tensor | None]:
        """W_A and its bias, v, weight and bias of the dense layer on the attended vector."""
        dense = (None, None) if self.dense is None else (self.dense.weight, self.dense.bias)
        return [self.align.weight, self.align.bias, self.context.weight, *dense]


class Readout(nn.Module):
    """H¹ … H^T → one vector for each graph, and the attention of each round: `ops.readout` has equations 7 and 8."""

    def __init__(self, config: MPADConfig, rounds: int, master: bool) -> None:
        super().__init__()
        self.skip, self.bounded = master and config.master_skip, config.score_tanh
        self.attention = nn.ModuleList(AttentionWeights(config) for _ in range(rounds))
        width = rounds * config.hidden * (2 if self.skip else 1)
        self.norm = NormWeights(width)
        self.dense = LinearWeights(width, config.hidden)

    def forward(self, states: list[Tensor], segments: Segments) -> tuple[Tensor, Tensor]:
        """States → vectors ([models,] groups, hidden), attention (rounds, words)."""
        norm, weights = self.norm, [tensor for one in self.attention for tensor in one.tensors()]  # type: ignore[operator]
        learnt = norm.weight, norm.bias, self.dense.weight, self.dense.bias
        momentum = norm.momentum or 0.0
        return ops.readout(
            states, segments, weights, *learnt, norm.running, norm.training, momentum, norm.eps, self.skip, self.bounded
        )
