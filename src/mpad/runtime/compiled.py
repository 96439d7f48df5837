"""What the runtime calls of native/passes.c, where that was built and runs; else NumPy does it all."""

from ctypes import POINTER, Structure, c_int, c_long, c_void_p
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpad import native
from mpad.graph.packed import PackedGraphs
from mpad.native import at
from mpad.runtime.answer import Floats

Ints = NDArray[np.int64]
PLAIN, RELU, TANH = range(3)
_FEW = 128  # rows


class _Combine(Structure):
    _fields_ = native.fields("own told states gates told_gates told_new rest_gates rest_new u")


class GraphsOfWords(Structure):
    """Some graphs, as C sees them; it does not keep their arrays alive."""

    _fields_ = native.fields("node_start edge_start source target weight", "n master mean")


def _described(library: Any) -> Any:
    if library is not None:
        library.mpad_affine.argtypes = [c_void_p, c_long, c_long, c_void_p, c_long, c_void_p, c_void_p, c_int]
        library.mpad_combine.argtypes = [POINTER(_Combine), c_long, c_long, c_void_p]
        library.mpad_attend.argtypes = [
            c_void_p, c_void_p, c_long, c_long, c_void_p, c_void_p, c_void_p, c_int, c_void_p, c_void_p
        ]  # fmt: skip
        library.mpad_hear.argtypes = [POINTER(GraphsOfWords), c_void_p, c_long, c_void_p, c_void_p]
    return library


_library = _described(native.library)


def there() -> bool:
    """Whether there are compiled passes."""
    return _library is not None


def takes(rows: int, width: int) -> bool:
    """Whether so many rows of this width are for compiled passes: few are done before a call is prepared."""
    return _library is not None and rows >= _FEW and native.fits(width)


def arrays_of(graphs: PackedGraphs) -> list[NDArray[Any]]:
    """Starts of nodes and edges; words; sources, targets and weights of edges, as C reads them."""
    kinds = {"node_start": np.int64, "edge_start": np.int64, "weight": np.float32}
    names = "node_start", "edge_start", "words", "source", "target", "weight"
    return [np.ascontiguousarray(getattr(graphs, name), kinds.get(name, np.int32)) for name in names]


def affine(x: Floats, w: Floats, b: Floats | None, how: int) -> Floats:
    """[ReLU or tanh of] x W + b."""
    rows, (n_in, n_out) = len(x), w.shape
    y = np.empty((rows, n_out), np.float32)
    _library.mpad_affine(at(x), rows, n_in, at(w), n_out, None if b is None else at(b), at(y), how)
    return y


def combine(
    n: int,
    own: Ints | None,
    told: Ints | None,
    states: Floats,
    gates: Floats,
    told_rows: tuple[Floats, Floats],
    rest: tuple[Floats, Floats] | None,
    u: Floats,
) -> Floats:
    """The new states of n rows; see `update.combine`."""
    width = states.shape[1]
    out = np.empty((n, width), np.float32)
    rests = (None, None) if rest is None else rest
    arrays = own, told, states, gates, *told_rows, *rests, u
    _library.mpad_combine(_Combine(*[None if array is None else at(array) for array in arrays]), n, width, at(out))
    return out


def attend(
    h: Floats, start: Ints, align: Floats, bias: Floats, context: Floats, bounded: bool
) -> tuple[Floats, Floats]:
    """Rows of groups → their weighted sums and weights: (rows, width) → (groups, width), (rows,)."""
    groups, width = len(start) - 1, h.shape[1]
    alpha = np.empty(int(start[-1] - start[0]), np.float32)
    pooled = np.empty((groups, width), np.float32)
    places = at(h), at(start), groups, width, at(align), at(bias), at(context), bounded, at(alpha), at(pooled)
    _library.mpad_attend(*places)
    return pooled, alpha


def hear(graphs: GraphsOfWords, x: Floats, bias: Floats) -> Floats:
    """ReLU(D⁻¹ A x + b) over graphs of words."""
    y = np.empty(x.shape, np.float32)
    _library.mpad_hear(graphs, at(x), x.shape[1], at(bias), at(y))
    return y
