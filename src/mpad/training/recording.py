"""A step recorded as a CUDA graph, to be replayed without launch cost."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from mpad.graph.planned import PlannedBatch, PlannedCorpus, PlanSize


class Recording:
    """A step recorded as a CUDA graph: copy a planned batch into place, and replay."""

    def __init__(
        self,
        corpus: PlannedCorpus,
        example: Tensor,
        models: int,
        size: PlanSize,
        step: Callable[[PlannedBatch], None],
        changed: Sequence[Tensor],
    ) -> None:
        self._place = example.clone()
        before = [tensor.clone() for tensor in changed]
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream), _tensor_cores():
            step(corpus.batch(self._place, models, size))  # compiles kernels and warms caches up
        torch.cuda.current_stream().wait_stream(stream)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph), _tensor_cores():
            step(corpus.batch(self._place, models, size))
        for tensor, value in zip(changed, before, strict=True):
            tensor.copy_(value)

    def replay(self, step: Tensor) -> None:
        """Run the step on a planned batch."""
        self._place.copy_(step)
        self._graph.replay()


@contextmanager
def _tensor_cores() -> Iterator[None]:
    """Products in TF32: float32's range, ten bits of mantissa, sums in float32."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
