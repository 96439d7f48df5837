"""How an operator finds its implementation: by PyTorch's dispatcher, on the device of its tensors.

An operator is a plain torch function, its reference, which autograd differentiates. Faster implementations of the same
function are registered for a device through `torch.library`; one that does not take its arguments (another type, a
width that it was not written for) returns NotImplemented, and the reference runs. Layers call the operator, and never
ask which implementation that is.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from inspect import signature
from typing import Annotated, Any, Generic, Literal, NamedTuple, ParamSpec, TypeVar, get_type_hints

import torch
from torch import Tensor

Changed = Annotated[list[Tensor], "changed"]  # tensors that an operator writes to
PLAIN = {Tensor, torch.nn.Parameter}  # tensors with memory of their own: not those that stand for others in a tracer
_LIBRARY = torch.library.Library("mpad", "FRAGMENT")
_TYPES = {
    Tensor: "Tensor",
    Tensor | None: "Tensor?",
    list[Tensor]: "Tensor[]",
    list[Tensor | None]: "Tensor?[]",
    tuple[Tensor, Tensor]: "(Tensor, Tensor)",
    int: "int",
    float: "float",
    bool: "bool",
    type(None): "()",
}
_reference_only: ContextVar[bool] = ContextVar("mpad.ops.reference_only", default=False)
_structures: list[type] = []
operators: dict[str, "Operator[..., Any]"] = {}
Given = ParamSpec("Given")
Result = TypeVar("Result")


@contextmanager
def use(implementation: Literal["reference", "fast"]) -> Iterator[None]:
    """While this lasts, run the plain references alone, or (the default) the fastest implementation there is."""
    if implementation not in ("reference", "fast"):
        raise ValueError(f"implementation must be 'reference' or 'fast', not {implementation!r}")
    before = _reference_only.set(implementation == "reference")
    try:
        yield
    finally:
        _reference_only.reset(before)


def in_use() -> Literal["reference", "fast"]:
    """Which implementations run now."""
    return "reference" if _reference_only.get() else "fast"


def structure(kind: type) -> type:
    """Let operators take a NamedTuple of this class, its tensors first and then its numbers."""
    made: Any = kind
    made.number = len(_structures)
    made.n_tensors = sum(hint in (Tensor, Tensor | None) for hint in get_type_hints(kind).values())
    _structures.append(kind)
    return kind


class Operator(Generic[Given, Result]):
    """A function of tensors with one reference and at most one faster implementation for each device.

    `cpu` and `cuda` name implementations as "module:function"; a module is imported when its operator is first called.
    """

    def __init__(self, reference: Callable[Given, Result], cpu: str | None, cuda: str | None) -> None:
        self.name, self.reference = reference.__name__, reference
        self.__doc__ = reference.__doc__
        self._functions: dict[str, Callable[..., Any]] = {}
        self.implementations = {device: where for device, where in (("CPU", cpu), ("CUDA", cuda)) if where}
        hints = get_type_hints(reference, include_extras=True)
        self._structured = [
            hints[name] not in _TYPES and hints[name] != Changed for name in signature(reference).parameters
        ]
        _LIBRARY.define(self._schema(hints))
        _LIBRARY.impl(self.name, self._registered("any"), "CompositeImplicitAutograd")
        for device in self.implementations:
            _LIBRARY.impl(self.name, self._registered(device), device)
            _LIBRARY.impl(self.name, self._registered(device), f"Autograd{device}")
        self._call = getattr(torch.ops.mpad, self.name).default
        operators[self.name] = self

    def __call__(self, *given: Given.args, **named: Given.kwargs) -> Result:
        """Run the fastest implementation that takes these arguments, which are given by position."""
        if named:
            raise TypeError(f"{self.name} takes its arguments by position, not {', '.join(named)} by name")
        if _reference_only.get():
            return self.reference(*given, **named)
        result: Result = self._call(*self._flat(given))
        return result

    def _schema(self, hints: dict[str, Any]) -> str:
        """The operator as `torch.library` wants it described: a structure is a list of tensors and one of numbers."""
        parameters, changed = [], 0
        for name in signature(self.reference).parameters:
            if hints[name] == Changed:
                parameters.append(f"Tensor({chr(ord('a') + changed)}!)[] {name}")
                changed += 1
            elif hints[name] in _TYPES:
                parameters.append(f"{_TYPES[hints[name]]} {name}")
            else:
                parameters.append(f"Tensor?[] {name}, int[] {name}_numbers")
        return f"{self.name}({', '.join(parameters)}) -> {_TYPES[hints['return']]}"

    def on(self, device: str, *given: Any) -> Any:
        """Run a device's implementation, or, where it does not take the arguments or there is none, the reference."""
        where = self.implementations.get(device)
        if where is not None:
            if device not in self._functions:
                module, name = where.split(":")
                self._functions[device] = getattr(import_module(module), name)
            result = self._functions[device](*given)
            if result is not NotImplemented:
                return result
        reference: Callable[..., Result] = self.reference
        return reference(*given)

    def _registered(self, device: str) -> Callable[..., Any]:
        return lambda *flat: self.on(device, *self._structures(flat))

    def _flat(self, given: Sequence[Any]) -> list[Any]:
        flat: list[Any] = []
        for value, structured in zip(given, self._structured, strict=True):
            flat += flatten(value) if structured else (value,)
        return flat

    def _structures(self, flat: Sequence[Any]) -> list[Any]:
        values, given = iter(flat), []
        for structured in self._structured:
            given.append(unflatten(next(values), next(values)) if structured else next(values))
        return given


def operator(
    cpu: str | None = None, cuda: str | None = None
) -> Callable[[Callable[Given, Result]], Operator[Given, Result]]:
    """Make a function the reference of an operator of its name."""
    return lambda reference: Operator(reference, cpu, cuda)


def flatten(value: Any) -> tuple[list[Tensor | None], list[int]]:
    """A structure as its tensors, and its numbers behind the number of its class."""
    n = value.n_tensors
    return list(value[:n]), [value.number, *map(int, value[n:])]


def unflatten(tensors: Sequence[Tensor | None], numbers: Sequence[int]) -> Any:
    """The structure that `flatten` took apart."""
    return _structures[numbers[0]](*tensors, *numbers[1:])


class Registered(NamedTuple):
    """One implementation of an operator."""

    operator: str
    device: str  # "any" for the reference
    where: str


def registered() -> list[Registered]:
    """Every operator with its reference and its faster implementations."""
    rows = []
    for operator in operators.values():
        reference = operator.reference
        rows.append(Registered(operator.name, "any", f"{reference.__module__}:{reference.__name__}"))
        rows += [Registered(operator.name, device, where) for device, where in operator.implementations.items()]
    return rows
