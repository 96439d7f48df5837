"""Operators on a GPU, as Triton kernels: fewer launches and fewer passes over memory.

Without Triton the references run. Rows are ([models,] rows, width) everywhere, the width unit-strided. On a machine
without a GPU, Triton's interpreter (TRITON_INTERPRET=1) runs the same kernels, slowly, for tests.
"""

from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor

from mpad.ops.dispatch import PLAIN


@cache
def available() -> bool:
    """Whether Triton is installed."""
    return find_spec("triton") is not None


def takes(*tensors: Tensor | None) -> bool:
    """Whether kernels take tensors like these: float32, plain."""
    return available() and all(x is None or (x.dtype is torch.float32 and type(x) in PLAIN) for x in tensors)
