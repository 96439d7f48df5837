"""The same layers' inner loops as Triton kernels: fewer launches and fewer passes over memory on a GPU.

Each kernel computes what the torch code beside its layer computes; tests hold the two together. Without Triton, or on
a CPU, the torch code runs. Rows are ([models,] rows, width) everywhere, the width unit-strided.
"""

from functools import cache
from importlib.util import find_spec

from torch import Tensor


@cache
def available() -> bool:
    """Whether Triton is installed."""
    return find_spec("triton") is not None


def run_on(x: Tensor) -> bool:
    """Whether the kernels take this tensor."""
    return x.is_cuda and available()
