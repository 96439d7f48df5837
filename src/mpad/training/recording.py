"""A step recorded as a CUDA graph, to be replayed without launch cost."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor


class Recording:
    """A recorded step: copy a planned batch into place, and replay."""

    def __init__(self, place: Tensor, graph: torch.cuda.CUDAGraph) -> None:
        self._place, self._graph = place, graph

    def replay(self, step: Tensor) -> None:
        """Run the step on a planned batch."""
        self._place.copy_(step)
        self._graph.replay()


class Recorder:
    """Records steps. They run one after another, and share their memory."""

    def __init__(self, generator: torch.Generator | None = None) -> None:
        self._pool = torch.cuda.graph_pool_handle()
        self._generator = generator  # that steps draw from

    def record(self, example: Tensor, step: Callable[[Tensor], None], changed: Sequence[Tensor]) -> Recording:
        """Record a step, on a planned batch in its place; the tensors that it changes are as before afterwards."""
        place, before = example.clone(), [tensor.detach().clone() for tensor in changed]
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream), _tensor_cores():
            step(place)  # compiles kernels and warms caches up
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        if self._generator is not None:
            graph.register_generator_state(self._generator)
        with torch.cuda.graph(graph, pool=self._pool), _tensor_cores():
            step(place)
        with torch.no_grad():
            for tensor, value in zip(changed, before, strict=True):
                tensor.copy_(value)
        return Recording(place, graph)


@contextmanager
def _tensor_cores() -> Iterator[None]:
    """Products in TF32: float32's range, ten bits of mantissa, sums in float32."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
