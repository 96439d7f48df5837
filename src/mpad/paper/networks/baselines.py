"""The baselines' networks by name, each with its configuration; the registry says where they are."""

from dataclasses import fields
from importlib import import_module

from mpad.errors import InputError
from mpad.network import Network
from mpad.paper.networks.config import NetworkConfig
from mpad.registry import REGISTRY


def _import(path: str) -> tuple[type[Network], type[NetworkConfig]]:
    module, name = path.split(":")
    home = import_module(f"mpad.paper.networks.{module}")
    return getattr(home, name), getattr(home, f"{name}Config")


BASELINES = {name: _import(entry.network) for name, entry in REGISTRY.items() if entry.network}


def find_baseline(name: str) -> tuple[type[Network], type[NetworkConfig]]:
    """Return the network of that name and its configuration."""
    if name not in BASELINES:
        raise InputError(f"no network '{name}' (known: {', '.join(BASELINES)})")
    return BASELINES[name]


def baseline_options(name: str) -> set[str]:
    """Return a network's own options."""
    return {field.name for field in fields(find_baseline(name)[1])} - {field.name for field in fields(NetworkConfig)}
