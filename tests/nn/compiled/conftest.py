import pytest

from mpad.nn import compiled


@pytest.fixture
def by_torch(monkeypatch):
    """What a function gives without compiled passes."""

    def call(function):
        with monkeypatch.context() as patch:
            patch.setattr(compiled, "takes", lambda x: False)
            return function()

    return call
