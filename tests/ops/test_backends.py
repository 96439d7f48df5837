"""Every operator × device × option: the fast implementation against the reference, forwards and backwards.

Kernels for a GPU run on one where there is one, and in Triton's interpreter elsewhere.
"""

import warnings

import pytest
import torch
from tests.ops import cases

from mpad import ops
from mpad.ops import cpu

HAS_GPU = torch.cuda.is_available()
GPU = "cuda" if HAS_GPU else "cpu"
needs_library = pytest.mark.skipif(cpu.library() is None, reason="the compiled kernels were not built")


@pytest.fixture(scope="module", autouse=True)
def warm():
    """Make cuBLAS's handle, of which torch warns when autograd's thread is the first to want one."""
    if HAS_GPU:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            one = torch.ones(1, 1, device="cuda")
            one.requires_grad_().mm(one).backward()


def tensors_of(given):
    """Every tensor in some arguments, in their order."""
    for value in given:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from tensors_of(value)


def run(operator, given, how):
    """Results, tensors that were changed, and gradients of all that want one."""
    results = how(operator, given)
    outputs = [results] if isinstance(results, torch.Tensor) else list(results or [])
    differentiable = [out for out in outputs if out.requires_grad]
    wanted = [x for x in tensors_of(given) if x.requires_grad]
    gradients = []
    if differentiable:
        torch.manual_seed(7)
        given_back = [torch.randn(out.shape).to(out.device) for out in differentiable]
        gradients = torch.autograd.grad(differentiable, wanted, given_back, allow_unused=True)
    unwanted = [x for x in tensors_of(given) if not x.requires_grad and x.is_floating_point()]
    return outputs, unwanted, gradients


def reference(operator, given):
    with ops.use("reference"):
        return operator(*given)


def check(case, fast):
    operator = ops.operators[case.operator]
    made = []
    for _ in range(2):
        torch.manual_seed(1)
        made.append(case.arguments())
    expected = run(operator, made[0], reference)
    found = run(operator, made[1], fast)
    for kind, ours, theirs in zip(("result", "changed", "gradient"), found, expected, strict=True):
        assert len(ours) == len(theirs)
        for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            if one is None or other is None:  # no gradient at all is a gradient of zeros
                left = one if other is None else other
                assert left is None or left.abs().max() < 1e-3, (kind, number)
                continue
            scale = other.abs().max().clamp(min=1) if other.numel() else 1
            assert torch.allclose(one / scale, other / scale, atol=case.tolerance), (kind, number)


def taken(case):
    function = case.operator
    operator = ops.operators[function]
    operator.on(case.device, *case.arguments())  # imports it
    return operator._functions[case.device](*case.arguments()) is not NotImplemented


@needs_library
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("case", cases.cpu_cases(), ids=str)
def test_on_a_cpu(case, threads):
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        check(case, lambda operator, given: operator(*given))  # as PyTorch's dispatcher finds it
        assert taken(case) == case.taken
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("case", cases.cuda_cases(GPU), ids=str)
def test_on_a_gpu(case):
    pytest.importorskip("triton")
    if HAS_GPU:
        check(case, lambda operator, given: operator(*given))
    else:
        check(case, lambda operator, given: operator.on("CUDA", *given))
    assert taken(case) == case.taken


@pytest.mark.skipif(not HAS_GPU, reason="the interpreter has no bfloat16")
def test_weight_gradients_of_lower_precision():
    from mpad.ops.cuda.linear import weight_gradient

    g, x = torch.randn(2, 70, 64, device="cuda"), torch.randn(2, 70, 128, device="cuda")
    allowed = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("high")
        d_w, d_b = weight_gradient(g, x, bias=True)
    finally:
        torch.set_float32_matmul_precision(allowed)
    assert torch.allclose(d_w, (g.double().mT @ x.double()).float(), atol=0.3)  # bfloat16 has eight bits
    assert torch.allclose(d_b, g.sum(1), atol=1e-4)


def test_every_implementation_is_in_the_table():
    """An implementation that no case takes would be tested by nobody."""
    rows = [(case.operator, case.device) for case in (*cases.cpu_cases(), *cases.cuda_cases("cpu")) if case.taken]
    assert {(row.operator, row.device) for row in ops.registered() if row.device != "any"} == set(rows)


def test_every_operator_runs_with_tensors_that_stand_for_others():
    """Shapes alone are enough: torch's FakeTensor, as torch.compile and torch.export use it."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    for case in cases.cpu_cases():
        if case.operator in ("message_round", "readout") and "64" in case.name and "words" in case.name:
            given = case.arguments()
            operator = ops.operators[case.operator]
            shape = operator(*given).shape if case.operator == "message_round" else operator(*given)[0].shape
            with FakeTensorMode() as mode:
                fake = [_faked(value, mode) for value in given]
                out = operator(*fake)
            assert (out if case.operator == "message_round" else out[0]).shape == shape


def _faked(value, mode):
    if isinstance(value, torch.Tensor):
        return mode.from_tensor(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*[_faked(part, mode) for part in value])
    return [_faked(part, mode) for part in value] if isinstance(value, list) else value


@needs_library
@pytest.mark.parametrize("operator", ["message_round", "readout", "embedding_linear", "dropout"])
def test_torch_approves(operator):
    """torch.library.opcheck: schema, autograd registration, fake tensors, and tracing ahead of time."""
    case = next(case for case in cases.cpu_cases() if case.operator == operator and case.taken)
    torch.manual_seed(0)
    found = ops.operators[operator]
    torch.library.opcheck(
        found._call, tuple(found._flat(case.arguments())), test_utils=("test_schema", "test_faketensor")
    )
