"""Layers over rows of different lengths: what is filled up is never read."""

import warnings
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


def masked_softmax(score: Tensor, real: Tensor, dim: int) -> Tensor:
    """Softmax over what is real; zeros where nothing is."""
    lowest = torch.finfo(score.dtype).min
    return torch.softmax(score.masked_fill(~real, lowest), dim) * real


def run_recurrent(layer: nn.RNNBase, x: Tensor, length: Tensor) -> tuple[Tensor, Tensor]:
    """States at every place, and the last state of each row (both directions side by side).

    x: (rows, longest, in) → (rows, longest, out), zeros behind the end; (rows, out). An empty row counts as one of a
    single zero.
    """
    length = length.clamp(min=1)
    return run_filled(layer, x, length) if x.is_cuda else run_packed(layer, x, length)


def run_packed(layer: nn.RNNBase, x: Tensor, length: Tensor) -> tuple[Tensor, Tensor]:
    """Only what is real is computed; the host must know the lengths."""
    packed = pack_padded_sequence(x, length.cpu(), batch_first=True, enforce_sorted=False)
    states, last = layer(packed)
    hidden: Any = last[0] if isinstance(layer, nn.LSTM) else last
    padded, _ = pad_packed_sequence(states, batch_first=True, total_length=x.shape[1])
    directions = 2 if layer.bidirectional else 1
    return padded, hidden[-directions:].transpose(0, 1).flatten(1)


def run_filled(layer: nn.RNNBase, x: Tensor, length: Tensor) -> tuple[Tensor, Tensor]:
    """Run the layer over whole rows with padding, which avoids a synchronization for lengths on a GPU.

    Backwards, each row is reversed before and after: the layer reads its last word first.
    """
    place = torch.arange(x.shape[1], device=x.device)
    real, end = (place < length[:, None])[..., None], (length - 1)[:, None, None]
    turned = torch.where(real[..., 0], length[:, None] - 1 - place, place)[..., None]
    states, last = [], []
    for direction in range(2 if layer.bidirectional else 1):
        read = x.gather(1, turned.expand_as(x)) if direction else x
        out = _one_direction(layer, read, direction) * real
        last.append(out.gather(1, end.expand(-1, 1, out.shape[2])).squeeze(1))
        states.append(out.gather(1, turned.expand_as(out)) if direction else out)
    return torch.cat(states, -1), torch.cat(last, -1)


def _one_direction(layer: nn.RNNBase, x: Tensor, direction: int) -> Tensor:
    """States of one direction of a layer: (rows, longest, hidden)."""
    weights: list[Tensor] = layer.all_weights[direction]  # type: ignore[assignment]
    start = x.new_zeros(1, x.shape[0], layer.hidden_size)
    how = True, 1, 0.0, layer.training, False, True  # biases, layers, dropout, training, both ways, rows first
    with warnings.catch_warnings():  # weights are views of one long vector, for Adam; cuDNN copies them and says so
        warnings.filterwarnings("ignore", "RNN module weights are not part")
        if isinstance(layer, nn.LSTM):
            out: Tensor = torch.lstm(x, (start, start), weights, *how)[0]
        else:
            out = torch.gru(x, start, weights, *how)[0]
    return out
