"""The operators of the networks: each a plain torch function, with faster implementations behind the same name.

>>> from mpad import ops
>>> with ops.use("reference"):  # the plain functions alone, for reading, testing and exporting
...     ops.in_use()
'reference'

`registered()` lists every operator with its implementations; docs/architecture.md prints that table.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from mpad.ops.adam import adam_step
from mpad.ops.batch_norm import batch_norm
from mpad.ops.cuda import available
from mpad.ops.directional import directional_attention
from mpad.ops.dispatch import Operator, Registered, in_use, operators, registered, use
from mpad.ops.embedding import DropoutState, Words, dropout, embedding_linear
from mpad.ops.graph import Graph, Segments, batch_segments, mean_weights, sentence_graph, word_graph
from mpad.ops.linear import linear, stacked_linear
from mpad.ops.message_passing import RoundWeights, UpdateWeights, aggregate, gated_update, message_round
from mpad.ops.readout import attention, readout


def takes_static_graphs() -> bool:
    """Whether graphs of a static batch have kernels; the reference's shapes depend on their numbers of edges."""
    return in_use() == "fast" and available()


@contextmanager
def compile_ahead() -> Iterator[None]:
    """While this lasts, kernels for a GPU are compiled, many at a time, instead of launched; results are garbage."""
    if not available():
        yield
        return
    from mpad.ops.cuda import kernel

    with kernel.compile_ahead():
        yield


__all__ = [
    "DropoutState",
    "Graph",
    "Operator",
    "Registered",
    "RoundWeights",
    "Segments",
    "UpdateWeights",
    "Words",
    "adam_step",
    "aggregate",
    "attention",
    "batch_norm",
    "directional_attention",
    "dropout",
    "embedding_linear",
    "gated_update",
    "in_use",
    "linear",
    "mean_weights",
    "message_round",
    "operators",
    "readout",
    "registered",
    "batch_segments",
    "compile_ahead",
    "sentence_graph",
    "stacked_linear",
    "takes_static_graphs",
    "use",
    "word_graph",
]
