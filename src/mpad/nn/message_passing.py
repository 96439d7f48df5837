"""One round of messages."""

from torch import Tensor, nn

from mpad import ops
from mpad.nn.config import MPADConfig
from mpad.nn.embedding import WordRows
from mpad.nn.linear import GateWeights, LinearWeights, NormWeights
from mpad.ops import Graph, RoundWeights


class MessagePassing(nn.Module):
    """H → H', equations 4 to 6: `ops.message_round` has the equation, and the configuration says which of its parts.

    H: ([models,] nodes, in_width); H': ([models,] nodes, width). The `first` round starts from word vectors, which are
    of another width than the gate's state: a learnt projection W₀ takes them there (an MLP before the mean does so
    anyway). The paper is silent about it.
    """

    def __init__(self, config: MPADConfig, in_width: int, first: bool) -> None:
        super().__init__()
        width, gated = config.hidden, config.combine == "gru"
        self.relu = config.mlp_relu
        self.before1 = self.before_norm = self.before2 = self.mlp_norm = self.project = None
        if config.mlp_before:
            self.before1 = LinearWeights(in_width, width)
            self.before_norm = NormWeights(width) if config.mlp_norm else None
            self.before2 = LinearWeights(width, width)
        self.mlp1 = LinearWeights(width if config.mlp_before else in_width, width)
        self.mlp_norm = NormWeights(width) if config.mlp_norm else None
        self.mlp2 = LinearWeights(width, width)
        if first and gated and not config.mlp_before:
            self.project = LinearWeights(in_width, width, bias=False)
        self.gate = GateWeights(width) if gated else None

    def forward(self, h: Tensor | WordRows, graph: Graph) -> Tensor:
        """H → H'."""
        first = self.mlp1 if self.before1 is None else self.before1
        state: Tensor | None
        if isinstance(h, Tensor):
            state, x = h, None
            if self.project is not None:
                state, x = ops.linear(h, self.project.weight), ops.linear(h, first.weight)
        elif self.project is not None:
            x, state = h.linear(first.weight, self.project.weight)  # one product for both
        else:
            (x,) = h.linear(first.weight)
            state = x if self.before1 is None else None  # without a gate H is not read
        norms = [norm for norm in (self.before_norm, self.mlp_norm) if norm is not None]
        running = [average for norm in norms for average in norm.running]
        by_batch = all(norm.training for norm in norms)
        momentum, eps = (norms[0].momentum or 0.0, norms[0].eps) if norms else (0.0, 0.0)
        return ops.message_round(state, x, graph, self._weights(), running, by_batch, momentum, eps, self.relu)

    def _weights(self) -> RoundWeights:
        before = (*_linear(self.before1), *_norm(self.before_norm), *_linear(self.before2))
        gate = (None,) * 4 if self.gate is None else self.gate.tensors()
        last = self.mlp2.weight, self.mlp2.bias
        return RoundWeights(*before, self.mlp1.weight, self.mlp1.bias, *_norm(self.mlp_norm), *last, *gate)


def _linear(weights: LinearWeights | None) -> tuple[Tensor | None, Tensor | None]:
    return (None, None) if weights is None else (weights.weight, weights.bias)


def _norm(weights: NormWeights | None) -> tuple[Tensor | None, Tensor | None]:
    return (None, None) if weights is None else (weights.weight, weights.bias)
