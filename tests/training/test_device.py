import pytest

from mpad.errors import InputError
from mpad.network import find_device


def test_devices():
    assert find_device("auto").type in ("cpu", "cuda") and find_device("cpu").type == "cpu"
    for name in ("toaster", "cuda:99"):
        with pytest.raises(InputError, match=f"device '{name}' cannot be used here"):
            find_device(name)
