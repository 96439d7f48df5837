"""The library compiled from kernels.c when the package was installed, or None without a compiler.

Everything that it computes has a NumPy or torch version next to the place that calls it; tests compare the two.
abi.h describes its structures: the ctypes classes here are read from that file, and their sizes are compared with
the compiler's when the library is loaded. MPAD_NATIVE=off in the environment turns the library off;
MPAD_NATIVE=FILE loads another build, such as one with sanitizers.
"""

import ctypes
import logging
import os
import re
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

LANES, _WIDEST, _VERSION = 16, 256, 21  # as in kernels.c
STRIP, BLOCK, PANEL = 24, 96, 64  # likewise: rows, rows, columns
_NUMBERS = {int, bool, float}
_KINDS = {"long": ctypes.c_long, "unsigned long": ctypes.c_ulong, "int": ctypes.c_int, "float": ctypes.c_float}


def _structures(header: str) -> dict[str, type[ctypes.Structure]]:
    """Return the structures of a C header that has nothing else."""
    result: dict[str, type[ctypes.Structure]] = {}
    for name, body in re.findall(r"struct (\w+) \{(.*?)\};", re.sub(r"/\*.*?\*/", "", header, flags=re.S), re.S):
        fields: list[tuple[str, Any]] = []
        for declaration in filter(None, map(str.strip, body.split(";"))):
            kind, names = re.fullmatch(r"(?:const )?(struct \w+|(?:unsigned )?\w+) (.*)", declaration, re.S).groups()  # type: ignore[union-attr]
            for field in map(str.strip, names.split(",")):
                value: Any = result[kind.split()[1]] if kind.startswith("struct") else _KINDS.get(kind)
                if field[0] == "*":
                    value = ctypes.POINTER(value) if kind.startswith("struct") else ctypes.c_void_p
                fields.append((field.lstrip("*"), value))
        result[name] = type(name, (ctypes.Structure,), {"_fields_": fields})
    return result


class _Size(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("size", ctypes.c_long)]


def _agrees(library: ctypes.CDLL) -> bool:
    """Check that every structure has the size that the compiler gave it."""
    sizes = (_Size * (len(structures) + 1)).in_dll(library, "mpad_sizes")
    theirs = {entry.name.decode(): entry.size for entry in sizes if entry.name}
    return theirs == {name: ctypes.sizeof(kind) for name, kind in structures.items()}


def _load() -> tuple[ctypes.CDLL | None, str]:
    """Return the library, or why it is missing."""
    requested = os.environ.get("MPAD_NATIVE", "")
    if requested == "off":
        return None, "no: MPAD_NATIVE=off"
    built = [Path(__file__).with_name(f"_kernels{suffix}") for suffix in EXTENSION_SUFFIXES]
    why = "no: not built, for want of a C compiler when mpad was installed (GCC or Clang)"
    for file in [Path(requested)] if requested else built:
        if not file.exists() or ctypes.sizeof(ctypes.c_long) != 8:
            continue
        try:
            library = ctypes.CDLL(str(file))
        except OSError as error:
            why = f"no: built for another machine ({error})"
            continue
        if library.mpad_ready(_VERSION) and _agrees(library):
            return library, ""
        why = "no: built for another version of mpad (install it again), or this processor has no AVX2"
    return None, why


structures = _structures(Path(__file__).with_name("abi.h").read_text(encoding="utf-8"))
library, missing = _load()


@cache
def report_missing() -> None:
    """Warn once that compiled code is unavailable, unless it was turned off."""
    if library is None and os.environ.get("MPAD_NATIVE", "") != "off":
        logging.getLogger("mpad").warning(
            "compiled code is not in use (%s): training and prediction on a CPU take two to three times as long. "
            "`mpad info` shows which code is in use",
            missing,
        )


def lanes() -> int:
    """Return how many numbers a vector register of the loaded library holds."""
    assert library is not None
    return int(library.mpad_lanes())


def at(array: Any) -> int:
    """Return the address of a NumPy array."""
    assert array.flags.c_contiguous, "compiled kernels read contiguous rows"
    return int(array.__array_interface__["data"][0])


def pack(name: str, /, **fields: Any) -> ctypes.Structure:
    """Fill a structure of abi.h: tensors and arrays as pointers, the rest as ctypes does, what is missing with zero.

    The structure does not keep the memory that it points to alive.
    """
    for field, value in fields.items():
        if value is None or type(value) in _NUMBERS:
            continue
        if hasattr(value, "data_ptr"):
            fields[field] = value.data_ptr()
        elif hasattr(value, "__array_interface__"):
            fields[field] = at(value)
    return structures[name](**fields)


def fits(*widths: int) -> bool:
    """Return whether the loaded library supports rows of these widths."""
    return all(width % LANES == 0 and 0 < width <= _WIDEST for width in widths)
