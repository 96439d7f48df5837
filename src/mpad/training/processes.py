"""Training by several processes, on one machine or on many: a plain program of torch.distributed.

`torchrun` and `accelerate launch` start the processes and give each its rank in the environment. Every process has its
share of each batch. The loss, the gradients and the statistics of batch norms are sums over all of them, so all have
the same weights after every step.
"""

import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from mpad import kernels
from mpad.errors import MPADError
from mpad.model import BatchNorm

N = TypeVar("N", bound=nn.Module)
_PATIENCE = timedelta(minutes=30)  # for a slow process; one that has ended is reported at once


class ProcessGone(MPADError):
    """Another process of the same training has ended."""


@dataclass(frozen=True)
class Processes:
    """Number of processes of a training, and the rank of this one."""

    rank: int = 0
    size: int = 1

    @property
    def first(self) -> bool:
        """True for the process that writes."""
        return self.rank == 0

    def share(self, n: int) -> range:
        """Return the range of n items that belongs to this process."""
        return range(self.rank * n // self.size, (self.rank + 1) * n // self.size)

    def sum(self, x: Tensor) -> Tensor:
        """Add a tensor up over all processes, in place."""
        if self.size > 1:
            with _translate_errors():
                torch.distributed.all_reduce(x)
        return x

    def sum_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        """Add gradients up over all processes, as one vector."""
        if self.size == 1:
            return
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
        flat = self.sum(torch.cat([gradient.reshape(-1) for gradient in gradients]))
        for parameter, part in zip(parameters, flat.split([p.numel() for p in parameters]), strict=True):
            parameter.grad = part.view(parameter.shape)

    def share_batches(self, network: N) -> N:
        """Let batch norms use the rows of all processes. Kernels see only one process, so plain forwards run."""
        kernels.accelerate(network, False)
        _replace(network, BatchNorm, _SharedBatchNorm)
        return network

    def leave_batches(self, network: nn.Module) -> None:
        """Undo `share_batches`."""
        _replace(network, _SharedBatchNorm, BatchNorm)

    def wait(self) -> None:
        """Wait for the other processes."""
        if self.size > 1:
            on_gpu = torch.distributed.get_backend() == "nccl"
            self.sum(torch.zeros(1, device="cuda" if on_gpu else "cpu"))


ALONE = Processes()


class _Sum(torch.autograd.Function):
    """The sum over processes; what follows it happens in each of them, so gradients are summed as well."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        with _translate_errors():
            x = x.clone()
            torch.distributed.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        with _translate_errors():
            gradient = gradients[0].clone()
            torch.distributed.all_reduce(gradient)
        return gradient


class _SharedBatchNorm(BatchNorm):
    """Batch norm over the rows of all processes."""

    def forward(self, input: Tensor) -> Tensor:
        """Normalize (rows, width) by the rows of all processes."""
        if not self.training or self.running_mean is None or self.running_var is None:
            return super().forward(input)
        total: Callable[[Tensor], Tensor] = _Sum.apply
        n = total(input.new_tensor([float(len(input))]))
        mean = total(input.sum(0)) / n
        var = total((input - mean).square().sum(0)) / n
        with torch.no_grad():
            self.running_mean.lerp_(mean, self.momentum or 0.0)
            self.running_var.lerp_(var * (n / (n - 1).clamp(min=1)), self.momentum or 0.0)
        return (input - mean) * torch.rsqrt(var + self.eps) * self.weight + self.bias


def _replace(network: nn.Module, old: type[nn.Module], new: type[nn.Module]) -> None:
    for module in network.modules():
        if type(module) is old:
            module.__class__ = new


@contextmanager
def _translate_errors() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        said = str(error).strip().splitlines()[0][:160]
        raise ProcessGone(
            f"another process of this training has ended ({said}); start it again with --resume to continue from its "
            "last epoch"
        ) from None


@contextmanager
def join_processes(device: torch.device) -> Iterator[Processes]:
    """Meet the other processes that were started with this one; alone if there are none."""
    if int(os.environ.get("WORLD_SIZE", "1")) <= 1:  # not started by torchrun or a similar launcher
        yield ALONE
        return
    if device.type == "cuda":
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    distributed: Any = torch.distributed
    store, rank, size = next(distributed.rendezvous("env://", timeout=_PATIENCE))
    # torchrun's store outlives a restart: without a name of its own, this attempt may read where the last one listened.
    store = distributed.PrefixStore(f"attempt-{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)
    backend = "nccl" if device.type == "cuda" else "gloo"
    distributed.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=_PATIENCE)
    own = Processes(rank, size)
    before = signal.signal(signal.SIGTERM, _exit)
    try:
        yield own
    finally:
        signal.signal(signal.SIGTERM, before)
        distributed.destroy_process_group()


def _exit(number: int, frame: Any) -> None:
    """Report a signal and exit: torchrun ends the processes that are left when one is gone."""
    sys.stderr.write(
        "mpad: training was ended from outside, as when another of its processes is gone; --resume goes on\n"
    )
    sys.stderr.flush()
    os._exit(143)
