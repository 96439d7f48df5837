"""Recurrent layers over rows of different lengths: what is filled up is never read."""

from typing import Any

from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


def run_recurrent(layer: nn.RNNBase, x: Tensor, length: Tensor) -> tuple[Tensor, Tensor]:
    """States at every place, and the last state of each row (both directions side by side).

    x: (rows, longest, in) → (rows, longest, out), zeros behind the end; (rows, out). An empty row counts as one of a
    single zero.
    """
    at_least_one = length.clamp(min=1).cpu()
    packed = pack_padded_sequence(x, at_least_one, batch_first=True, enforce_sorted=False)
    states, last = layer(packed)
    hidden: Any = last[0] if isinstance(layer, nn.LSTM) else last
    padded, _ = pad_packed_sequence(states, batch_first=True, total_length=x.shape[1])
    directions = 2 if layer.bidirectional else 1
    return padded, hidden[-directions:].transpose(0, 1).flatten(1)
