"""kernels.c, compiled when the package was installed, if there was a compiler: the library, or None.

Everything that it computes has a NumPy or torch form beside the place that calls it; tests hold the two together.
Its structures are described once, in abi.h: the classes here are read from that file, and their sizes compared with
the compiler's when the library is loaded. MPAD_NATIVE=off in the environment does without the library;
MPAD_NATIVE=FILE takes another build, such as one with sanitizers.
"""

import ctypes
import logging
import os
import re
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

LANES, _WIDEST, _VERSION = 16, 256, 17  # as in kernels.c, and so are
STRIP, BLOCK, PANEL = 24, 96, 64  # rows, rows, columns
_NUMBERS = {int, bool, float}
_KINDS = {"long": ctypes.c_long, "unsigned long": ctypes.c_ulong, "int": ctypes.c_int, "float": ctypes.c_float}


def _structures(header: str) -> dict[str, type[ctypes.Structure]]:
    """The structures of a C header that holds nothing else."""
    made: dict[str, type[ctypes.Structure]] = {}
    for name, body in re.findall(r"struct (\w+) \{(.*?)\};", re.sub(r"/\*.*?\*/", "", header, flags=re.S), re.S):
        fields: list[tuple[str, Any]] = []
        for declaration in filter(None, map(str.strip, body.split(";"))):
            kind, names = re.fullmatch(r"(?:const )?(struct \w+|(?:unsigned )?\w+) (.*)", declaration, re.S).groups()  # type: ignore[union-attr]
            for field in map(str.strip, names.split(",")):
                value = made[kind.split()[1]] if kind.startswith("struct") and field[0] != "*" else _KINDS.get(kind)
                fields.append((field.lstrip("*"), ctypes.c_void_p if field[0] == "*" else value))
        made[name] = type(name, (ctypes.Structure,), {"_fields_": fields})
    return made


class _Size(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("size", ctypes.c_long)]


def _agrees(library: ctypes.CDLL) -> bool:
    """Whether every structure is as large as the compiler made it."""
    sizes = (_Size * (len(structures) + 1)).in_dll(library, "mpad_sizes")
    theirs = {entry.name.decode(): entry.size for entry in sizes if entry.name}
    return theirs == {name: ctypes.sizeof(kind) for name, kind in structures.items()}


def _load() -> tuple[ctypes.CDLL | None, str]:
    """The library, or why there is none."""
    asked = os.environ.get("MPAD_NATIVE", "")
    if asked == "off":
        return None, "no: MPAD_NATIVE=off"
    usual = [Path(__file__).with_name(f"_kernels{suffix}") for suffix in EXTENSION_SUFFIXES]
    why = "no: not built, for want of a C compiler when mpad was installed (GCC or Clang)"
    for file in [Path(asked)] if asked else usual:
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
_nested = {
    (name, field)
    for name, kind in structures.items()
    for field, value, *_ in kind._fields_
    if issubclass(value, ctypes.Structure)
}
library, missing = _load()


@cache
def report_missing() -> None:
    """Say once, where compiled code would be used, that there is none; not where somebody has turned it off."""
    if library is None and os.environ.get("MPAD_NATIVE", "") != "off":
        logging.getLogger("mpad").warning(
            "compiled code is not in use (%s): training and answering on a CPU take two to three times as long. "
            "`mpad info` says which way the numbers take here",
            missing,
        )


def lanes() -> int:
    """Numbers that an existing library computes at once."""
    assert library is not None
    return int(library.mpad_lanes())


def at(array: Any) -> int:
    """Address of a NumPy array."""
    assert array.flags.c_contiguous, "compiled kernels read rows that lie end to end"
    return int(array.__array_interface__["data"][0])


def pack(name: str, /, **fields: Any) -> ctypes.Structure:
    """The structure of that name in abi.h: tensors and structures as pointers, numbers as they are, the rest zero.

    It does not keep what it points to alive.
    """
    for field, value in fields.items():
        if value is None or type(value) in _NUMBERS:
            continue
        if hasattr(value, "data_ptr"):
            fields[field] = value.data_ptr()
        elif hasattr(value, "__array_interface__"):
            fields[field] = at(value)
        elif (name, field) not in _nested:
            fields[field] = ctypes.addressof(value)
    return structures[name](**fields)


def fits(*widths: int) -> bool:
    """Whether an existing library takes rows this wide."""
    return all(width % LANES == 0 and 0 < width <= _WIDEST for width in widths)
