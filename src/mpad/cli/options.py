"""Command-line options for parameters of the library: type, default and help come from the library's docstrings.

The docstrings are parsed without importing the library, which would load torch before a command checks its arguments.
"""

import ast
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from typer import Option

import mpad

_TYPES: dict[str, Any] = {"bool": bool, "int": int, "float": float, "path": Path}  # others are str
_ENTRY = re.compile(
    r"^(?P<name>\w+) : (?P<type>\w*)(?:\{(?P<choices>.*?)\})?(?: from (?P<min>\d+)(?: to (?P<max>\d+))?)?.*?"
    r"(?:, default=(?P<default>.+))?\n(?P<help>(?: {4}.+\n)+)",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Parameters:
    """Options of a command that are passed on to a class or function of mpad.

    An option that is left out is not passed on, unless its default is a value of its type.
    """

    source: str  # public name of mpad, or module:name
    names: str
    condition: str = ""  # of using these options

    def options(self) -> list[inspect.Parameter]:
        """Return the parameters of a command, one per name."""
        entries = _read_docstring(self.source)
        return [self._as_option(entries[name]) for name in self.names.split()]

    def _as_option(self, entry: re.Match[str]) -> inspect.Parameter:
        kind = _TYPES.get(entry["type"], str)
        value = ast.literal_eval(entry["default"] or "None")
        default = value if isinstance(value, kind) else None
        flag = [f"--{entry['name'].replace('_', '-')}"] if default is False else []  # others have --no-NAME, too
        low, high = (None if bound is None else int(bound) for bound in entry.group("min", "max"))
        choices = "" if entry["choices"] is None else ", ".join(ast.literal_eval(f"[{entry['choices']}]")) + "."
        described = " ".join([*self.condition.split(), *choices.split(), *entry["help"].split()])
        optional: Any = kind if default is not None else kind | None
        option = Option(*flag, min=low, max=high, help=described)
        annotation = Annotated[optional, option]
        return inspect.Parameter(entry["name"], inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


@cache
def _read_docstring(source: str) -> dict[str, re.Match[str]]:
    """Return the entries of the numpydoc section "Parameters" of a class or function."""
    module, _, name = source.rpartition(":")
    file = Path(mpad.__file__).parents[1] / f"{(module or mpad._HOME[name]).replace('.', '/')}.py"
    nodes = ast.parse(file.read_text("utf-8")).body
    found = next(node for node in nodes if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and node.name == name)
    section = (ast.get_docstring(found) or "").partition("Parameters\n----------\n")[2].partition("\n\n")[0]
    return {entry["name"]: entry for entry in _ENTRY.finditer(f"{section}\n")}


def expand_parameters(run: Callable[..., None]) -> Callable[..., None]:
    """Replace each keyword-only argument of a command that is annotated by `Parameters` by its options."""
    signature = inspect.signature(run)
    groups = {
        argument.name: note.options()
        for argument in signature.parameters.values()
        for note in getattr(argument.annotation, "__metadata__", ())
        if isinstance(note, Parameters)
    }

    def command(**values: Any) -> None:
        for name, options in groups.items():
            own = {option.name: values.pop(option.name) for option in options}
            values[name] = {option: value for option, value in own.items() if value is not None}
        run(**values)

    expanded = [
        option for argument in signature.parameters.values() for option in groups.get(argument.name, [argument])
    ]
    command.__doc__, command.__wrapped__ = run.__doc__, run  # type: ignore[attr-defined]
    command.__annotations__ = {option.name: option.annotation for option in expanded}
    command.__signature__ = signature.replace(parameters=expanded)  # type: ignore[attr-defined]
    return command
