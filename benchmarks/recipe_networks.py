"""Networks that the search for a recipe tries beside MPAD's own: plain torch, one model at a time, training alone."""

from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from mpad.graph.batch import GraphBatch
from mpad.models.mpad import MPAD
from mpad.models.network import Output
from mpad.nn.config import MPADConfig
from mpad.nn.embedding import WordRows
from mpad.nn.linear import LinearWeights, NormWeights
from mpad.nn.message_passing import MessagePassing
from mpad.nn.readout import AttentionWeights, Readout
from mpad.ops import Segments
from mpad.ops.graph import WordGraph
from mpad.ops.message_passing import UpdateWeights, aggregate, gated_update
from mpad.ops.readout import attention
from mpad.ops.segments import segment_sum


class _Masked:
    """Rows of words, some of them zeros."""

    def __init__(self, rows: WordRows, mask: Tensor) -> None:
        self._rows, self._mask = rows, mask

    def linear(self, *weights: Tensor) -> list[Tensor]:
        """H⁰ Wᵀ for each weight."""
        return [x * self._mask for x in self._rows.linear(*weights)]


class _Random(MPAD):
    """MPAD with a generator of its own for what is dropped."""

    rate: ClassVar[float]

    def __init__(self, config: MPADConfig) -> None:
        super().__init__(config)
        self._generator = torch.Generator().manual_seed(0)

    def _kept(self, n: int) -> Tensor:
        return (torch.rand(n, generator=self._generator) >= self.rate).float()


class WordDropout(_Random):
    """While training, some nodes have a zero vector in place of their word's."""

    rate = 0.1

    def embed(self, batch: Any, vectors: Tensor | None = None) -> Any:
        """H⁰."""
        rows = super().embed(batch, vectors)
        if not self.training:
            return rows
        kept = functional.pad(self._kept(batch.n_words), (0, rows.words.masters), value=1.0)
        return _Masked(rows, kept[:, None])


class MoreWordDropout(WordDropout):
    """The same of twice as many."""

    rate = 0.2


class EdgeDropout(_Random):
    """While training, some edges carry nothing, and the others more."""

    rate = 0.2

    def forward(self, batch: Any, edge_scale: Tensor | None = None, vectors: Tensor | None = None) -> Output:
        """Classify a batch."""
        if self.training:
            assert isinstance(batch, GraphBatch) and edge_scale is None
            edge_scale = self._kept(len(batch.source)) / (1 - self.rate)
        return super().forward(batch, edge_scale, vectors)


class _WideReadout(Readout):
    """Several attentions over each round's states, and perhaps their greatest and mean values beside them."""

    def __init__(self, config: MPADConfig, rounds: int, heads: int, max_and_mean: bool) -> None:
        super().__init__(config, rounds, master=True)
        self._heads, self._max_and_mean = heads, max_and_mean
        self.attention = nn.ModuleList(AttentionWeights(config) for _ in range(rounds * heads))
        width = rounds * config.hidden * (heads + 1 + (2 if max_and_mean else 0))
        self.norm, self.dense = NormWeights(width), LinearWeights(width, config.hidden)

    def forward(self, states: list[Tensor], segments: Segments) -> tuple[Tensor, Tensor]:
        """States → vectors (graphs, hidden), attention of each round's first head (rounds, words)."""
        n, parts, alphas = segments.owner.numel(), [], []
        for t, h in enumerate(states):
            words, masters = h[:n], h[n:]
            parts.append(masters)
            for head in range(self._heads):
                weights: Any = self.attention[t * self._heads + head]
                align, bias, context, dense, dense_bias = weights.tensors()
                pooled, alpha = attention(words, segments, align, bias, context, True)
                parts.append(functional.relu(functional.linear(pooled, dense, dense_bias)))
                alphas += [alpha] if head == 0 else []
            if self._max_and_mean:
                parts += _max_and_mean(words, segments)
        return functional.relu(self.dense(self.norm(torch.cat(parts, dim=-1)))), torch.stack(alphas)


def _max_and_mean(words: Tensor, segments: Segments) -> list[Tensor]:
    owner = segments.owner
    size = segment_sum(words.new_ones(len(owner), 1), owner, segments.n)
    highest = words.new_full((segments.n, words.shape[1]), -torch.inf)
    highest = highest.scatter_reduce(0, owner[:, None].expand_as(words), words, "amax")
    return [torch.where(size > 0, highest, 0.0), segment_sum(words, owner, segments.n) / size.clamp(min=1)]


class MaxAndMean(MPAD):
    """Greatest and mean values of the states beside attention."""

    def __init__(self, config: MPADConfig) -> None:
        super().__init__(config)
        self.words.readout = _WideReadout(config, config.steps, 1, max_and_mean=True)


class FourHeads(MPAD):
    """Four attentions a round."""

    def __init__(self, config: MPADConfig) -> None:
        super().__init__(config)
        self.words.readout = _WideReadout(config, config.steps, 4, max_and_mean=False)


class _BothWays(MessagePassing):
    """Messages along the edges and against them, each with an MLP of its own."""

    def __init__(self, config: MPADConfig, in_width: int, first: bool) -> None:
        super().__init__(config, in_width, first)
        width = config.hidden
        self.back1, self.back_norm = nn.Linear(width, width), nn.BatchNorm1d(width)
        self.back2 = nn.Linear(width, width, bias=False)

    def forward(self, h: Any, graph: Any) -> Tensor:
        """H → H'."""
        before1, before2, mlp1, mlp2, gate = self.before1, self.before2, self.mlp1, self.mlp2, self.gate
        assert before1 is not None and before2 is not None and gate is not None
        norms: list[Callable[[Tensor], Tensor]] = [self.before_norm, self.mlp_norm, self.back_norm]  # type: ignore[list-item]
        x = functional.linear(h, before1.weight) if isinstance(h, Tensor) else h.linear(before1.weight)[0]
        h = functional.linear(functional.relu(norms[0](x + before1.bias)), before2.weight, before2.bias)
        along = aggregate(functional.linear(h, mlp1.weight), graph) + mlp1.bias
        against = aggregate(functional.linear(h, self.back1.weight), _reversed(graph)) + self.back1.bias
        inbox = torch.cat([functional.relu(norms[1](along)), functional.relu(norms[2](against))], dim=-1)
        bias, w, u, v = gate.tensors()
        both = torch.cat([mlp2.weight, self.back2.weight], dim=1)
        return gated_update(h, inbox, UpdateWeights(both, mlp2.bias, bias, w, u, v), False)


def _reversed(graph: WordGraph) -> WordGraph:
    """The same edges the other way round, divided by what goes into their new targets."""
    counts = graph.weight / graph.share[graph.target]
    share = 1.0 / (torch.zeros_like(graph.share).index_add(0, graph.source, counts) + 1.0)
    weight = counts * share[graph.source]
    return graph._replace(source=graph.target, target=graph.source, weight=weight, share=share)


class BothDirections(MPAD):
    """Both directions, with two sets of weights."""

    def __init__(self, config: MPADConfig) -> None:
        super().__init__(config)
        widths = [config.vector_width, *[config.hidden] * (config.steps - 1)]
        self.words.rounds = nn.ModuleList(_BothWays(config, width, t == 0) for t, width in enumerate(widths))
