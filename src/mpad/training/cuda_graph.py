"""Steps without launch cost: recorded once as a CUDA graph, then replayed. On a CPU a step simply runs."""

import gc
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any

import torch
from torch import Tensor

from mpad import kernels

_recording = Lock()
Step = Callable[[Any, Hashable], None]


class Captured:
    """Function of an input and its static shape that changes tensors in place, recorded once per shape.

    `changed` gives all tensors that it changes: recording runs it, and they are as before afterwards. Recordings of one
    `pool` run one after another and share their memory.
    """

    def __init__(self, step: Step, changed: Callable[[], Sequence[Tensor]], pool: "Pool | None") -> None:
        self._step, self._changed, self._pool = step, changed, pool
        self.recordings: dict[Hashable, tuple[Tensor, torch.cuda.CUDAGraph]] = {}

    def __call__(self, given: Any, shape: Hashable) -> None:
        """Run the step."""
        if self._pool is None:
            self._step(given, shape)
            return
        if shape not in self.recordings:
            self.record(given, shape)
        place, graph = self.recordings[shape]
        place.copy_(given)
        graph.replay()

    def record(self, example: Tensor, shape: Hashable) -> None:
        """Record the step for a shape; one recording at a time in a process, whose precision it changes."""
        with _recording:
            self._record(example, shape)

    def _record(self, example: Tensor, shape: Hashable) -> None:
        pool, changed = self._pool, self._changed()
        assert pool is not None
        place, before = example.clone(), [tensor.detach().clone() for tensor in changed]
        pool.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(pool.stream), _tensor_cores():
            if not self.recordings:
                with kernels.compile_ahead():
                    self._step(place, shape)
            self._step(place, shape)  # warms caches up
        torch.cuda.current_stream().wait_stream(pool.stream)
        graph = torch.cuda.CUDAGraph()
        thread_local: Any = "thread_local"  # others may go on meanwhile
        with (
            _no_garbage_collection(),
            torch.cuda.graph(graph, pool=pool.handle, stream=pool.stream, capture_error_mode=thread_local),
            _tensor_cores(),
        ):
            self._step(place, shape)
        with torch.no_grad():
            for tensor, value in zip(changed, before, strict=True):
                tensor.copy_(value)
        self.recordings[shape] = place, graph


class Pool:
    """Memory and stream of the recordings of one training."""

    def __init__(self) -> None:
        self.handle, self.stream = torch.cuda.graph_pool_handle(), torch.cuda.Stream()


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Turn off garbage collection, which could free older recordings; CUDA forbids that while recording."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextmanager
def _tensor_cores() -> Iterator[None]:
    """Products in TF32: float32's range, ten bits of mantissa, sums in float32."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
