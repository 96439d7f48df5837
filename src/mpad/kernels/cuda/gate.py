"""The gated update, in one kernel each way: six products and the element-wise operations between them.

A program holds some rows in registers and reads the weights, which all programs share, from the cache. The map that
ends the message's MLP can run in front: then messages are written once and never read forwards.
"""

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from mpad.kernels.cuda import zeros
from mpad.kernels.cuda.aggregate import StaticWordGraph, run
from mpad.kernels.cuda.kernel import grid_of_rows, kernel, matrix, per_model, power_of_two, strides
from mpad.kernels.cuda.linear import weight_gradient
from mpad.model import Gate

WIDEST = 64  # columns: of wider rows too much is in registers and shared memory, and plain products are faster
_ROWS = 64
_GRADIENT_ROWS = 64  # read at a time
_PROGRAMS = 264  # two for each multiprocessor of a large GPU
Saved = tuple[Tensor, Tensor, Tensor]  # M; R, Z, C side by side; R ⊙ H


class UpdateWeights(NamedTuple):
    """Weights of a gated update, and of the map that ends the message's MLP; (out, in) each."""

    w2: Tensor | None  # None: the input is the message itself
    b2: Tensor | None
    bias: Tensor  # (3 · width,): of R, Z and C
    w: Tensor  # (3 · width, width): W_R, W_Z, W
    u: Tensor  # (2 · width, width): U_R, U_Z
    v: Tensor  # (width, width): U

    @classmethod
    def of(cls, gate: Gate, last: nn.Linear) -> "UpdateWeights":
        """Return the weights of a gate and of the linear map in front of it."""
        maps = gate.from_message.weight, gate.from_state.weight, gate.from_reset.weight
        return cls(last.weight, last.bias, gate.from_message.bias, *maps)


@triton.jit
def sigmoid(x):
    return 1.0 / (1.0 + tl.exp(-x))


@triton.jit
def tanh(x):
    return 2.0 / (1.0 + tl.exp(-2.0 * x)) - 1.0


@triton.jit
def weight(w, first, D: tl.constexpr, BLOCK: tl.constexpr):
    """Load rows first … first + D − 1 of a weight with contiguous rows: (out, in)."""
    o, i = tl.arange(0, BLOCK)[:, None], tl.arange(0, BLOCK)[None, :]
    return tl.load(w + (first + o) * D + i, (o < D) & (i < D), 0.0)


@triton.jit
def product(x, w, onto, PRECISION: tl.constexpr):
    """Add X Wᵀ to `onto`."""
    return tl.dot(x, tl.trans(w), onto, input_precision=PRECISION)


@triton.jit
def product_back(g, w, onto, PRECISION: tl.constexpr):
    """Add G W to `onto`."""
    return tl.dot(g, w, onto, input_precision=PRECISION)


@kernel()
def _forward(
    h, h_slab, h_row, x, x_slab, x_row, w2, w2_slab, b2, b2_slab, bias, bias_slab, w, w_slab, u, u_slab, v, v_slab,
    message, rzc, reset_h, out, rows,
    MAPS: tl.constexpr, RELU: tl.constexpr, PRECISION: tl.constexpr,
    D: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    model, row = tl.program_id(1).to(tl.int64), tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    in_row = column < D
    inside = (row < rows) & in_row
    at = (model * rows + row) * D + column
    gates = (model * rows + row) * 3 * D + column
    none = tl.zeros((ROWS, BLOCK), tl.float32)
    state = tl.load(h + model * h_slab + row * h_row + column, inside, 0.0)
    m = tl.load(x + model * x_slab + row * x_row + column, inside, 0.0)
    if MAPS:
        m = product(m, weight(w2 + model * w2_slab, 0, D, BLOCK), none, PRECISION)
        m += tl.load(b2 + model * b2_slab + column, in_row, 0.0)
        if RELU:
            m = tl.maximum(m, 0.0)
        tl.store(message + at, m, inside)
    bias += model * bias_slab
    w += model * w_slab
    u += model * u_slab
    r = product(m, weight(w, 0, D, BLOCK), none, PRECISION)
    r = product(state, weight(u, 0, D, BLOCK), r, PRECISION)
    r = sigmoid(r + tl.load(bias + column, in_row, 0.0))
    tl.store(rzc + gates, r, inside)
    r *= state
    tl.store(reset_h + at, r, inside)
    c = product(m, weight(w, 2 * D, D, BLOCK), none, PRECISION)
    c = product(r, weight(v + model * v_slab, 0, D, BLOCK), c, PRECISION)
    c = tanh(c + tl.load(bias + 2 * D + column, in_row, 0.0))
    tl.store(rzc + gates + 2 * D, c, inside)
    z = product(m, weight(w, D, D, BLOCK), none, PRECISION)
    z = product(state, weight(u, D, D, BLOCK), z, PRECISION)
    z = sigmoid(z + tl.load(bias + D + column, in_row, 0.0))
    tl.store(rzc + gates + D, z, inside)
    tl.store(out + at, state + z * (c - state), inside)


@kernel()
def _backward(
    g, g_slab, g_row, h, h_slab, h_row, x, message, rzc, w2, w2_slab, w, w_slab, u, u_slab, v, v_slab,
    d_rzc, d_h, d_m, d_x, sums, rows,
    MAPS: tl.constexpr, RELU: tl.constexpr, BEFORE: tl.constexpr, PRECISION: tl.constexpr,
    D: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    model, row = tl.program_id(1).to(tl.int64), tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (column < D)
    at = (model * rows + row) * D + column
    gates = (model * rows + row) * 3 * D + column
    none = tl.zeros((ROWS, BLOCK), tl.float32)
    w += model * w_slab
    u += model * u_slab
    given = tl.load(g + model * g_slab + row * g_row + column, inside, 0.0)
    state = tl.load(h + model * h_slab + row * h_row + column, inside, 0.0)
    z, c = tl.load(rzc + gates + D, inside, 0.0), tl.load(rzc + gates + 2 * D, inside, 0.0)
    d_z = given * (c - state) * z * (1.0 - z)
    d_c = given * z * (1.0 - c * c)
    to_h = given * (1.0 - z)
    tl.store(d_rzc + gates + D, d_z, inside)
    tl.store(d_rzc + gates + 2 * D, d_c, inside)
    to_m = product_back(d_c, weight(w, 2 * D, D, BLOCK), none, PRECISION)
    to_m = product_back(d_z, weight(w, D, D, BLOCK), to_m, PRECISION)
    to_h = product_back(d_z, weight(u, D, D, BLOCK), to_h, PRECISION)
    d_reset = product_back(d_c, weight(v + model * v_slab, 0, D, BLOCK), none, PRECISION)
    r = tl.load(rzc + gates, inside, 0.0)
    d_r = d_reset * state * r * (1.0 - r)
    to_h += d_reset * r
    tl.store(d_rzc + gates, d_r, inside)
    tl.store(d_h + at, product_back(d_r, weight(u, 0, D, BLOCK), to_h, PRECISION), inside)
    to_m = product_back(d_r, weight(w, 0, D, BLOCK), to_m, PRECISION)
    if RELU:
        to_m = tl.where(tl.load(message + at, inside, 0.0) > 0.0, to_m, 0.0)
    tl.store(d_m + at, to_m, inside)
    if MAPS:
        to_x = product_back(to_m, weight(w2 + model * w2_slab, 0, D, BLOCK), none, PRECISION)
        if BEFORE:
            to_x = tl.where(tl.load(x + at, inside, 0.0) > 0.0, to_x, 0.0)
            one = tl.arange(0, BLOCK)
            tl.atomic_add(sums + model * D + one, tl.sum(to_x, 0), one < D, sem="relaxed")
        tl.store(d_x + at, to_x, inside)


@kernel(do_not_specialize=["rows", "chunk"])
def _weight_gradients(
    d_rzc, d_m, m, m_slab, m_row, h, h_slab, h_row, reset_h, x, x_slab, x_row, d_w, d_b, rows, chunk,
    PARTS: tl.constexpr, HALF: tl.constexpr, D: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    split, part, model = tl.program_id(0), tl.program_id(1), tl.program_id(2).to(tl.int64)
    column = tl.arange(0, BLOCK)
    in_row = column < D
    g, g_row = d_rzc + model * rows * 3 * D + (part % 3) * D, 3 * D
    y, y_row = m + model * m_slab, m_row
    if part >= 3:
        y, y_row = h + model * h_slab, h_row
    if part == 5:
        y, y_row = reset_h + model * rows * D, D
    if part == 6:
        g, g_row = d_m + model * rows * D, D
        y, y_row = x + model * x_slab, x_row
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    bias = tl.zeros((BLOCK,), tl.float32)
    for start in range(split * chunk, tl.minimum(split * chunk + chunk, rows), ROWS):
        row = start + tl.arange(0, ROWS)[:, None]
        inside = (row < rows) & in_row[None, :]
        a = tl.load(g + row * g_row + column[None, :], inside, 0.0)
        b = tl.load(y + row * y_row + column[None, :], inside, 0.0)
        if HALF:
            total += tl.dot(tl.trans(a.to(tl.bfloat16)), b.to(tl.bfloat16))
        else:
            total += tl.dot(tl.trans(a), b, input_precision="ieee")
        bias += tl.sum(a, 0)
    at = d_w + ((model * PARTS + part) * D + column[:, None]) * D + column[None, :]
    tl.atomic_add(at, total, in_row[:, None] & in_row[None, :], sem="relaxed")
    tl.atomic_add(d_b + (model * PARTS + part) * D + column, bias, in_row, sem="relaxed")


def _gate_weight_gradients(
    d_rzc: Tensor, d_m: Tensor, m: Tensor, h: Tensor, reset_h: Tensor, x: Tensor | None
) -> tuple[tuple[Tensor, ...], tuple[Tensor | None, Tensor | None]]:
    """Return the gradients of the biases, W, the gates' U and U, and of W₂ and b₂ if the update has them.

    Sums over thousands of rows are split across the GPU: one launch for seven tiles per model. They belong to R, Z and
    C against messages, to R and Z against states, to C against R ⊙ H, and to the message against what it was made of.

    If lower precision is allowed, factors are rounded to bfloat16: tensor cores transpose it on the way.
    """
    rows, width = h.shape[-2:]
    models, parts, block = h.shape[0] if h.ndim == 3 else 1, 6 if x is None else 7, power_of_two(width)
    sums = zeros(h, (models * parts * width * (width + 1),))
    d_w = sums[: models * parts * width * width].view(*h.shape[:-2], parts, width, width)
    d_b = sums[models * parts * width * width :].view(*h.shape[:-2], parts * width)
    chunk = triton.cdiv(triton.cdiv(rows, max(1, _PROGRAMS // (parts * models))), _GRADIENT_ROWS) * _GRADIENT_ROWS
    half = torch.get_float32_matmul_precision() != "highest"
    x = m if x is None else x
    _weight_gradients[(triton.cdiv(rows, chunk), parts, models)](
        d_rzc, d_m, m, *strides(m), h, *strides(h), reset_h, x, *strides(x), d_w, d_b, rows, chunk,
        parts, half, width, block, _GRADIENT_ROWS,
    )  # fmt: skip
    w, u, u_reset = (d_w[..., first:last, :, :].flatten(-3, -2) for first, last in ((0, 3), (3, 5), (5, 6)))
    gate = d_b[..., : 3 * width], w, u, u_reset
    return gate, (None, None) if parts == 6 else (d_w[..., 6, :, :], d_b[..., 6 * width :])


def gated_update(
    h: Tensor,
    x: Tensor,
    weights: UpdateWeights,
    relu: bool,
    graph: StaticWordGraph | None = None,
    b1: Tensor | None = None,
) -> Tensor:
    """H, X → H' (eqs. 5, 6) with M = X W₂ + b₂, or its ReLU: (models, rows, width) each.

    With a graph, ReLU(D⁻¹ A X + b₁) takes the place of X: the paper's round, whose mean and ReLU are one kernel.
    """
    return _GatedUpdate.apply(h, x, relu, graph, b1, *weights)  # type: ignore[no-any-return]


class _GatedUpdate(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, h: Tensor, x: Tensor, relu: bool, graph: StaticWordGraph | None, b1: Tensor | None, *weights: Tensor
    ) -> Tensor:
        x = x if graph is None else run(x, graph, b1)
        h, x = (rows if rows.stride(-1) == 1 else rows.contiguous() for rows in (h, x))
        updated, saved = _update_forward(h, x, UpdateWeights(*weights), relu)
        ctx.save_for_backward(h, x, *saved, *weights)
        ctx.relu, ctx.graph = relu, graph
        return updated

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        h, x, message, rzc, reset_h, *weights = ctx.saved_tensors
        saved, graph = (message, rzc, reset_h), ctx.graph
        d_h, d_x, d_weights, d_b1 = _update_backward(
            gradients[0], h, x, saved, UpdateWeights(*weights), ctx.relu, before=graph is not None
        )
        return d_h, d_x if graph is None else run(d_x, graph, transposed=True), None, None, d_b1, *d_weights


def _update_forward(h: Tensor, x: Tensor, weights: UpdateWeights, relu: bool) -> tuple[Tensor, Saved]:
    """Return H' and the tensors that the backward needs."""
    if h.shape[-1] > WIDEST:
        return _wide_forward(h, x, weights, relu)
    rows, width = h.shape[-2:]
    w2, b2, bias, *maps = weights
    updated, message, reset_h = (torch.empty(x.shape, dtype=x.dtype, device=x.device) for _ in range(3))
    rzc = x.new_empty(*x.shape[:-1], 3 * width)
    last, last_bias = (maps[0], bias) if w2 is None or b2 is None else (w2, b2)
    tile = width, power_of_two(width), _ROWS
    _forward[grid_of_rows(h, tile[-1])](
        h, *strides(h), x, *strides(x), *matrix(last), *per_model(last_bias), *per_model(bias), *matrix(maps[0]),
        *matrix(maps[1]), *matrix(maps[2]), message, rzc, reset_h, updated, rows,
        w2 is not None, relu and w2 is not None, precision(), *tile,
    )  # fmt: skip
    return updated, (x if w2 is None else message, rzc, reset_h)


def _update_backward(
    g: Tensor, h: Tensor, x: Tensor, saved: Saved, weights: UpdateWeights, relu: bool, before: bool = False
) -> tuple[Tensor, Tensor, tuple[Tensor | None, ...], Tensor | None]:
    """Return the gradients of H, X, the weights, and a bias before X.

    `before`: X is ReLU(· + b); the gradient is that of the ReLU's input, and the last one is b's.
    """
    g = g if g.stride(-1) == 1 else g.contiguous()
    if h.shape[-1] > WIDEST:
        return _wide_backward(g, h, x, saved, weights, relu, before)
    message, rzc, reset_h = saved
    rows, width = h.shape[-2:]
    maps, has_map = weights[3:], weights.w2 is not None
    d_rzc = torch.empty_like(rzc)
    d_h, d_m, d_x = (torch.empty(message.shape, dtype=h.dtype, device=h.device) for _ in range(3))
    sums = zeros(d_m, (*d_m.shape[:-2], width)) if before else None
    last = maps[0] if weights.w2 is None else weights.w2
    tile = width, power_of_two(width), _ROWS
    _backward[grid_of_rows(h, tile[-1])](
        g, *strides(g), h, *strides(h), x, message, rzc, *matrix(last), *matrix(maps[0]), *matrix(maps[1]),
        *matrix(maps[2]), d_rzc, d_h, d_m, d_x, d_m if sums is None else sums, rows,
        has_map, relu and has_map, before, precision(), *tile,
    )  # fmt: skip
    of_gate, of_last = _gate_weight_gradients(d_rzc, d_m, message, h, reset_h, x if has_map else None)
    return d_h, d_x if has_map else d_m, (*of_last, *of_gate), sums


def _wide_forward(h: Tensor, x: Tensor, weights: UpdateWeights, relu: bool) -> tuple[Tensor, Saved]:
    """Return what `_update_forward` does, for rows too wide for one kernel: products by cuBLAS, the rest in place."""
    m, width = x, h.shape[-1]
    if weights.w2 is not None and weights.b2 is not None:
        m = (x @ weights.w2.mT).add_(weights.b2.unsqueeze(-2))
        m = m.relu_() if relu else m
    rzc = (m @ weights.w.mT).add_(weights.bias.unsqueeze(-2))
    gates, c = rzc.split((2 * width, width), dim=-1)
    gates.baddbmm_(h, weights.u.mT).sigmoid_()
    reset, update = gates.chunk(2, dim=-1)
    reset_h = reset * h
    c.baddbmm_(reset_h, weights.v.mT).tanh_()
    return torch.lerp(h, c, update), (m, rzc, reset_h)


def _wide_backward(
    g: Tensor, h: Tensor, x: Tensor, saved: Saved, weights: UpdateWeights, relu: bool, before: bool
) -> tuple[Tensor, Tensor, tuple[Tensor | None, ...], Tensor | None]:
    """Return what `_update_backward` does, written out: sums over rows split, and few tensors written."""
    m, rzc, reset_h = saved
    width = h.shape[-1]
    r, z, c = rzc.chunk(3, dim=-1)
    d_rzc = torch.empty_like(rzc)
    d_r, d_z, d_c = d_rzc.chunk(3, dim=-1)
    gz = g * z
    torch.ops.aten.tanh_backward(gz, c, grad_input=d_c)
    torch.ops.aten.sigmoid_backward((c - h).mul_(g), z, grad_input=d_z)
    d_reset = d_c @ weights.v
    torch.ops.aten.sigmoid_backward(d_reset * h, r, grad_input=d_r)
    d_h = torch.sub(g, gz, out=gz).addcmul_(d_reset, r).baddbmm_(d_rzc[..., : 2 * width], weights.u)
    d_m = d_rzc @ weights.w
    d_x, d_last = d_m, (None, None)
    if weights.w2 is not None:
        if relu:
            torch.ops.aten.threshold_backward(d_m, m, 0, grad_input=d_m)
        d_x, d_last = d_m @ weights.w2, weight_gradient(d_m, x, bias=True)  # type: ignore[assignment]
    if before:
        torch.ops.aten.threshold_backward(d_x, x, 0, grad_input=d_x)
    d_w, d_bias = weight_gradient(d_rzc, m, bias=True)
    d_u, _ = weight_gradient(d_rzc[..., : 2 * width], h, bias=False)
    d_v, _ = weight_gradient(d_rzc[..., 2 * width :], reset_h, bias=False)
    return d_h, d_x, (*d_last, d_bias, d_w, d_u, d_v), d_x.sum(-2) if before else None


def precision() -> str:
    """Return the precision of products."""
    return "ieee" if torch.get_float32_matmul_precision() == "highest" else "tf32"
