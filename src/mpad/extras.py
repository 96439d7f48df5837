"""Optional dependencies, imported when first needed."""

from importlib import import_module
from types import ModuleType

from mpad.errors import MissingExtra


def require(module: str, extra: str) -> ModuleType:
    """Give the module, or say which extra brings it."""
    try:
        return import_module(module)
    except ImportError:
        raise MissingExtra(f"'{module}' is needed here: pip install 'mpad[{extra}]'") from None
