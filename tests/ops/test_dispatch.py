import re
from pathlib import Path

import pytest
import torch

from mpad import ops
from mpad.ops.dispatch import flatten, unflatten
from mpad.ops.graph import Segments

PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"


def as_table():
    """What is registered, as docs/architecture.md prints it."""
    rows = {}
    for row in ops.registered():
        rows.setdefault(row.operator, {})[row.device] = f"`{row.where.removeprefix('mpad.ops.')}`"
    lines = ["| operator | reference | CPU (C) | CUDA (Triton) |", "|---|---|---|---|"]
    for name in sorted(rows):
        lines.append(f"| `{name}` | " + " | ".join(rows[name].get(on, "") for on in ("any", "CPU", "CUDA")) + " |")
    return "\n".join(lines)


def test_the_page_lists_what_is_registered():
    """Each operator has one reference and at most one implementation for each device."""
    found = re.search(r"<!-- operators -->\n(.*?)\n<!-- end of operators -->", PAGE.read_text(), re.DOTALL)
    assert found and found[1].strip() == as_table(), f"docs/architecture.md should hold:\n{as_table()}"
    names = [(row.operator, row.device) for row in ops.registered()]
    assert len(set(names)) == len(names)


def test_the_switch_runs_references_alone(monkeypatch):
    seen = []
    monkeypatch.setitem(ops.dropout._functions, "CPU", lambda *given: seen.append(given) or NotImplemented)
    x, state = torch.ones(4), ops.DropoutState(torch.tensor([1]), torch.tensor([0]), torch.tensor([128]), 0)
    with ops.use("reference"):
        assert ops.in_use() == "reference"
        with ops.use("fast"):
            assert ops.in_use() == "fast"
        plain = ops.dropout(x, state)
    assert ops.in_use() == "fast" and not seen
    assert torch.equal(ops.dropout(x, state), plain) and seen  # what it does not take, the reference does
    with pytest.raises(ValueError, match="'reference' or 'fast'"), ops.use("slow"):
        pass


def test_structures_are_taken_apart_and_put_together():
    given = Segments(torch.zeros(3), None, None, torch.ones(2), 4, 1)
    tensors, numbers = flatten(given)
    assert unflatten(tensors, numbers) == given and numbers[1:] == [4, 1]


def test_gradients_of_gradients_are_refused_by_compiled_code():
    from tests.ops.cases import batch_of, round_arguments

    given = round_arguments(batch_of(), "path", 16)
    out = ops.message_round(*given)
    (gradient,) = torch.autograd.grad(out.square().sum(), given[0], create_graph=True)
    if ops.cpu.library() is None:
        pytest.skip("the compiled kernels were not built")
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.square().sum().backward()


def test_a_weight_that_changed_before_the_gradient_was_taken_is_noticed():
    from tests.ops.cases import batch_of, round_arguments

    given = round_arguments(batch_of(), "path", 16, before=True, norm=True)
    out = ops.message_round(*given)
    with torch.no_grad():
        given[3].w2.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()
