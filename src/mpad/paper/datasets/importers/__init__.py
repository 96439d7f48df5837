"""From the original distributions to our files, a reader per format; the catalogue says which reads what."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from mpad.data.readers import Documents
from mpad.paper.datasets.catalogue import CATALOGUE

__all__ = ["IMPORTERS"]

IMPORTERS: dict[str, Callable[[Path], dict[str, Documents]]] = {
    name: getattr(import_module(f"{__name__}.{entry.format}"), f"read_{name}") for name, entry in CATALOGUE.items()
}
