"""passes.c, compiled when the package was installed, if there was a compiler: the library, or None.

Everything that it computes has a NumPy or torch form beside the place that calls it; tests hold the two together.
MPAD_NATIVE=off in the environment does without it; MPAD_NATIVE=FILE takes another build, such as one with sanitizers.
"""

import ctypes
import os
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

LANES, _WIDEST, _VERSION = 16, 256, 15  # as in passes.c, and so are
STRIP, BLOCK, PANEL = 24, 96, 64  # rows, rows, columns


def _load() -> tuple[ctypes.CDLL | None, str]:
    """The library, or why there is none."""
    asked = os.environ.get("MPAD_NATIVE", "")
    if asked == "off":
        return None, "no: MPAD_NATIVE=off"
    usual = [Path(__file__).with_name(f"_passes{suffix}") for suffix in EXTENSION_SUFFIXES]
    why = "no: not built, for want of a C compiler when mpad was installed (GCC or Clang, x86-64)"
    for file in [Path(asked)] if asked else usual:
        if not file.exists() or ctypes.sizeof(ctypes.c_long) != 8:
            continue
        try:
            found = ctypes.CDLL(str(file))
        except OSError as error:
            why = f"no: built for another machine ({error})"
            continue
        if found.mpad_ready(_VERSION):
            return found, ""
        why = "no: built for another version of mpad (install it again), or this processor has no AVX2"
    return None, why


library, missing = _load()


def lanes() -> int:
    """Numbers that an existing library computes at once."""
    assert library is not None
    return int(library.mpad_lanes())


def at(array: Any) -> int:
    """Where a NumPy array begins."""
    assert array.flags.c_contiguous, "compiled passes read rows that lie end to end"
    return int(array.__array_interface__["data"][0])


def fields(arrays: str, numbers: str = "") -> list[tuple[str, type]]:
    """The fields of one of passes.c's structures: pointers, then numbers."""
    pointers = [(name, ctypes.c_void_p) for name in arrays.split()]
    return [*pointers, *[(name, ctypes.c_long) for name in numbers.split()]]


def fits(*widths: int) -> bool:
    """Whether rows this wide can be taken; of an existing library."""
    return all(width % LANES == 0 and 0 < width <= _WIDEST for width in widths)
