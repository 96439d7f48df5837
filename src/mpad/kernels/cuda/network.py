"""MPAD over static batches of several stacked models, composed of Triton kernels.

The same network as `mpad.model`: every weight has a leading axis, one entry per model, and rows are
(models, rows, width). The last document of each model is a dummy that owns the padding.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mpad.kernels.cpu import attention_weights
from mpad.kernels.cuda.aggregate import StaticWordGraph, aggregate, word_graph
from mpad.kernels.cuda.attention import attention
from mpad.kernels.cuda.batch_norm import batch_norm
from mpad.kernels.cuda.embedding import DropoutState, WordRows, dropout
from mpad.kernels.cuda.gate import UpdateWeights, gated_update
from mpad.kernels.cuda.linear import linear
from mpad.kernels.static_batch import StaticBatch
from mpad.model import (
    MPAD,
    Attention,
    BatchNorm,
    GraphEncoder,
    MessagePassing,
    Readout,
    SentenceGraph,
)
from mpad.network import Output


class _Level(NamedTuple):
    """Words of graphs, or sentences of documents."""

    graph: StaticWordGraph | SentenceGraph
    owner: Tensor  # (models, rows) int32, group of each row, masters excluded
    base: Tensor  # (models, groups) int32, first row of each group
    size: Tensor  # (models, groups) int32
    mask: Tensor  # (models, groups, 1), 0 for padding
    row_mask: Tensor | None  # (models, rows [+ masters], 1); None where no norm needs it


def forward(network: MPAD, batch: StaticBatch) -> Output:
    """Classify a static batch: logits (models, documents, classes)."""
    config = network.config
    row_mask = None
    if config.mlp_norm:
        row_mask = torch.cat([batch.word_mask, batch.graph_mask], dim=1) if config.master_node else batch.word_mask
    graph = word_graph(batch, config.master_node, config.renormalise)
    words = _Level(graph, batch.owner_in_model, batch.base, batch.size_in_model, batch.graph_mask, row_mask)
    table = network.vectors if batch.rows is None else batch.rows
    masters = batch.base.shape[1] if config.master_node else 0
    rows = WordRows(table, batch.corpus.words, batch.node, masters, DropoutState.of(network.input_dropout))
    x, word_attention = _encode(network.words, rows, words)
    sentence_attention = None
    if network.sentences is not None:
        over = SentenceGraph(batch.graph_owner, batch.graph_count, config.variant == "path", config.renormalise)
        runs = batch.document_of_graph, batch.first_graph, batch.n_graphs_of_document
        row_mask = batch.graph_mask if config.mlp_norm else None
        x, sentence_attention = _encode(network.sentences, x, _Level(over, *runs, batch.document_mask, row_mask))
    logits = linear(dropout(x, network.dropout), network.classes.weight, network.classes.bias)
    return Output(logits, x, word_attention, sentence_attention)


def _encode(encoder: GraphEncoder, h: Tensor | WordRows, level: _Level) -> tuple[Tensor, Tensor]:
    states = [h] if isinstance(h, Tensor) and not encoder.rounds else []
    mean = None
    if encoder.mean is not None:
        assert isinstance(h, WordRows) and isinstance(level.graph, StaticWordGraph)
        mean = _mean_of_words(h, level)
    for module in encoder.rounds:
        assert isinstance(module, MessagePassing)
        states.append(h := _round(module, h, level))
    return _readout(encoder.readout, states, level, mean)


def _round(module: MessagePassing, h: Tensor | WordRows, level: _Level) -> Tensor:
    """H → H'. The first linear map runs before the mean, D⁻¹ A (H W₁) = (D⁻¹ A H) W₁, over fewer columns."""
    first = module.mlp1 if module.before1 is None else module.before1
    state: Tensor | None
    if isinstance(h, Tensor):
        state, x = h, None
        if module.project is not None:  # sentences whose vectors are wider or narrower than the states
            x, state = linear(h, first.weight), linear(h, module.project.weight)
    elif module.project is not None:
        x, state = h.linear(first.weight, module.project.weight)
    else:
        (x,) = h.linear(first.weight)
        state = x if module.before1 is None else None  # without a gate the state is not read
    if module.before1 is not None and module.before2 is not None:
        x = linear(_rows(state), module.before1.weight) if x is None else x
        x = _bias_norm_relu(x, module.before1.bias, module.before_norm, level.row_mask)
        state, x = linear(x, module.before2.weight, module.before2.bias), None
    state = _rows(state)
    x = linear(state, module.mlp1.weight) if x is None else x
    graph = level.graph
    if isinstance(graph, StaticWordGraph):
        normed = isinstance(module.mlp_norm, BatchNorm)
        if module.gate is not None and module.before1 is None and not normed and module.relu:
            update = UpdateWeights.of(module.gate, module.mlp2)
            return gated_update(state, x, update, True, graph, module.mlp1.bias)
        received = aggregate(x, graph)
    else:
        received = graph.aggregate(x.flatten(0, 1)).view(x.shape)
    inbox = _bias_norm_relu(received, module.mlp1.bias, module.mlp_norm, level.row_mask)
    if module.gate is None:
        m = linear(inbox, module.mlp2.weight, module.mlp2.bias)
        return F.relu(m) if module.relu else m
    return gated_update(state, inbox, UpdateWeights.of(module.gate, module.mlp2), module.relu)


def _rows(h: Tensor | None) -> Tensor:
    assert h is not None, "rows are needed where their first map is not given"
    return h


def _bias_norm_relu(x: Tensor, bias: Tensor, norm: nn.Module, mask: Tensor | None) -> Tensor:
    if not isinstance(norm, BatchNorm):
        return F.relu(x + bias.unsqueeze(-2))
    if norm.training:
        assert mask is not None
        return batch_norm(x, bias, norm, mask, relu=True)
    return F.relu(_by_running_averages(x + bias.unsqueeze(-2), norm))


def _by_running_averages(x: Tensor, norm: BatchNorm) -> Tensor:
    assert norm.running_mean is not None and norm.running_var is not None
    scale = norm.weight * torch.rsqrt(norm.running_var + norm.eps)
    return torch.addcmul((norm.bias - norm.running_mean * scale).unsqueeze(-2), x, scale.unsqueeze(-2))


def _mean_of_words(h: WordRows, level: _Level) -> Tensor:
    """Return the mean of each graph's word vectors: (models, graphs, width)."""
    rows, n = h.dense(), level.owner.shape[1]
    total = rows.new_zeros(len(rows), level.base.shape[1], rows.shape[2])
    place = level.owner.long()[..., None].expand(-1, -1, rows.shape[2])
    return total.scatter_add(1, place, rows[:, :n]) / level.size.clamp(min=1)[..., None]


def _readout(module: Readout, states: list[Tensor], level: _Level, mean: Tensor | None) -> tuple[Tensor, Tensor]:
    n, parts, alphas = level.owner.shape[1], [], []
    for own, h in zip(module.attention, states, strict=True):
        assert isinstance(own, Attention)
        dense, dense_bias, align, bias, context = attention_weights(own)
        assert align is not None and context is not None
        rows, masters = h.split((n, h.shape[1] - n), dim=1)
        if module.skip or not masters.shape[1]:
            u, alpha = attention(rows, level.base, level.size, align, bias, context, own.bounded)
        else:
            u, alpha = _attention_with_masters(h, level, align, bias, context, own.bounded)
        parts.append(u if dense is None else F.relu(linear(u, dense, dense_bias)))
        if module.skip:
            parts.append(masters)
        alphas.append(alpha.view(len(h), -1)[:, :n].flatten())
    joined = torch.cat(parts if mean is None else [*parts, mean], dim=-1)
    if module.norm.training:
        normal = batch_norm(joined, None, module.norm, level.mask, relu=False)
    else:
        normal = _by_running_averages(joined, module.norm)
    return F.relu(linear(normal, module.dense.weight, module.dense.bias)), torch.stack(alphas)


def _attention_with_masters(
    h: Tensor, level: _Level, align: Tensor, bias: Tensor | None, context: Tensor, bounded: bool
) -> tuple[Tensor, Tensor]:
    """Attend over words and master alike: the ablation without the master's skip connection."""
    graph, word = (torch.arange(x.shape[1], device=h.device, dtype=x.dtype) for x in (level.base, level.owner))
    place = torch.cat([word + level.owner, level.base + level.size + graph], dim=1).long()  # masters behind their words
    rows = h.gather(1, place.argsort(dim=1)[..., None].expand_as(h))
    u, alpha = attention(rows, level.base + graph, level.size + 1, align, bias, context, bounded)
    return u * level.mask, alpha.view(len(h), -1).gather(1, place)
