"""Triton kernels for GPUs: fewer launches and fewer passes over memory.

`network.forward` is MPAD over static batches of several stacked models; without Triton the plain model runs. Rows are
(models, rows, width), the width unit-strided. Without a GPU, Triton's interpreter (TRITON_INTERPRET=1) runs the same
kernels, slowly, for tests.
"""

from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor

from mpad.kernels.cpu import PLAIN


@cache
def available() -> bool:
    """Return whether Triton is installed."""
    return find_spec("triton") is not None


def takes(*tensors: Tensor | None) -> bool:
    """Return whether Triton is installed and these are plain float32 tensors."""
    return available() and all(x is None or (x.dtype is torch.float32 and type(x) in PLAIN) for x in tensors)
