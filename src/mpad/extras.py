"""Optional dependencies, imported when first needed."""

import re
from importlib import import_module
from importlib.metadata import PackageNotFoundError, requires
from types import ModuleType

from mpad.errors import MissingExtra


def require(module: str, extra: str) -> ModuleType:
    """Import a module of an extra; if it is missing, raise with the command that installs the extra."""
    try:
        return import_module(module)
    except ImportError:
        raise MissingExtra(f"'{module}' is needed here: {install_command(extra)}") from None


def install_command(extra: str) -> str:
    """Return the command that installs an extra."""
    packages = " ".join(_packages(extra)) or f"'mpad[{extra}]'"
    return f"pip install {packages}"


def _packages(extra: str) -> list[str]:
    """Return the packages of an extra, which can be installed wherever mpad itself came from."""
    try:
        lines = requires("mpad") or []
    except PackageNotFoundError:  # run from its sources
        return []
    own = re.compile(rf"extra == ['\"]{re.escape(extra)}['\"]")
    named = [line.partition(";")[0].strip() for line in lines if own.search(line)]
    return [f"'{name}'" if re.search(r"[<>=!~\[]", name) else name for name in named if not name.startswith("mpad[")]
