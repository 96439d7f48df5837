from contextlib import contextmanager

import pytest
import torch

from mpad.nn import compiled


@pytest.fixture
def by_torch(monkeypatch):
    """What a function gives without compiled passes."""

    def call(function):
        with monkeypatch.context() as patch:
            patch.setattr(compiled, "takes", lambda x: False)
            return function()

    return call


@contextmanager
def _on_threads(n):
    before = torch.get_num_threads()
    torch.set_num_threads(n)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@pytest.fixture
def on_threads():
    """A context in which torch has so many threads."""
    return _on_threads
