"""Faster versions of the modules of `mpad.model`: C on a CPU, Triton on a GPU.

`accelerate(network)` replaces the `forward` of every module that a backend supports. The replacement is chosen per
call, by device, type and shape; where no backend applies, the plain forward runs. The modules do not know.

MPAD_KERNELS=off turns acceleration off; `accelerate(network, False)` restores the plain forwards.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from mpad.dropout import Dropout
from mpad.graph.batch import GraphBatch
from mpad.kernels import cuda
from mpad.kernels.cpu import WordRows, mean_of_words, message_round, pool
from mpad.kernels.static_batch import StaticBatch
from mpad.model import MPAD, Graph, MeanOfWords, MessagePassing, Readout, WordGraph
from mpad.network import Output

N = TypeVar("N", bound=nn.Module)


def accelerate(network: N, enabled: bool | None = None) -> N:
    """Replace the forwards of a network's modules by faster ones, in place.

    Parameters
    ----------
    network : nn.Module
        Any network; modules that no backend knows stay as they are.
    enabled : bool, default=None
        False restores the plain forwards. None means True unless the environment has MPAD_KERNELS=off.

    Returns
    -------
    nn.Module
        The same network.

    """
    if enabled is None:
        enabled = _enabled()
    classes = _FAST if enabled else {fast: plain for plain, fast in _FAST.items()}
    for module in network.modules():
        module.__class__ = classes.get(type(module), type(module))
    return network


def register(plain: type[nn.Module], fast: type[nn.Module]) -> None:
    """Let `accelerate` replace one module class by a subclass with a faster forward."""
    _FAST[plain] = fast


class FastMPAD(MPAD):
    """MPAD over static batches in Triton; otherwise word vectors are looked up where the first round maps them."""

    def forward(
        self, batch: GraphBatch | StaticBatch, edge_scale: Tensor | None = None, vectors: Tensor | None = None
    ) -> Output:
        """Classify a batch."""
        if isinstance(batch, StaticBatch):
            from mpad.kernels.cuda.network import forward  # needs Triton

            return forward(self, batch)
        return super().forward(batch, edge_scale, vectors)

    def embed(self, batch: GraphBatch, vectors: Tensor | None = None) -> Any:
        """H⁰ as rows that only the first round of messages sees."""
        table = vectors if vectors is not None else self.vectors if batch.rows is None else batch.rows
        rows = WordRows.of(table, batch, self.config.master_node, self.input_dropout)
        return super().embed(batch, vectors) if rows is None else rows


class FastMessagePassing(MessagePassing):
    """A round of message passing in C."""

    def forward(self, h: Tensor | WordRows, graph: Graph) -> Tensor:
        """H → H'."""
        result = message_round(self, h, graph)
        if result is not NotImplemented:
            return result  # type: ignore[no-any-return]
        return super().forward(h.dense() if isinstance(h, WordRows) else h, graph)


class FastMeanOfWords(MeanOfWords):
    """The mean of word vectors that are looked up once per distinct word."""

    def forward(self, h: Tensor | WordRows, graph: Graph) -> Tensor:
        """H⁰ → means."""
        if isinstance(h, WordRows) and isinstance(graph, WordGraph):
            return mean_of_words(h, graph)
        return super().forward(h.dense() if isinstance(h, WordRows) else h, graph)


class FastReadout(Readout):
    """The readout, its attention in C."""

    def pool(self, states: list[Tensor], graph: Graph) -> tuple[Tensor, Tensor]:
        """H¹ … H^T → their parts of the readout, attention."""
        result = pool(self, states, graph)
        return super().pool(states, graph) if result is NotImplemented else result


class FastDropout(Dropout):
    """Dropout in Triton."""

    def forward(self, x: Tensor, rows: Tensor | None = None) -> Tensor:
        """Drop elements while training."""
        if rows is None and self.training and self.p and x.is_cuda and cuda.takes(x):
            from mpad.kernels.cuda.embedding import dropout

            return dropout(x, self)
        return super().forward(x, rows)


_FAST: dict[type[nn.Module], type[nn.Module]] = {
    MPAD: FastMPAD,
    MessagePassing: FastMessagePassing,
    MeanOfWords: FastMeanOfWords,
    Readout: FastReadout,
    Dropout: FastDropout,
}


def adam_step(
    parameters: list[Tensor],
    gradients: list[Tensor],
    moments: list[list[Tensor]],
    rates: Tensor,
    steps: Tensor,
    active: Tensor,
) -> bool:
    """Take a step of Adam for several models in Triton; return False if it does not support these tensors."""
    everything = *parameters, *gradients, *moments[0], *moments[1]
    if not parameters[0].is_cuda or not cuda.takes(*everything):
        return False
    from mpad.kernels.cuda.adam import adam_step

    adam_step(parameters, gradients, moments[0], moments[1], rates, steps, active)
    return True


def supports_static_batches(device: torch.device) -> bool:
    """Return whether networks on this device train on static batches."""
    return device.type == "cuda" and cuda.available() and _enabled()


def _enabled() -> bool:
    return os.environ.get("MPAD_KERNELS", "") != "off"


@contextmanager
def compile_ahead() -> Iterator[None]:
    """Compile the kernels of a GPU, many at a time, instead of launching them; results are garbage."""
    if not cuda.available():
        yield
        return
    from mpad.kernels.cuda import kernel

    with kernel.compile_ahead():
        yield


__all__ = ["accelerate", "adam_step", "compile_ahead", "register", "supports_static_batches"]
