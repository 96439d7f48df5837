"""Choose the device to compute on."""

import torch

from mpad.errors import InputError


def find_device(name: str) -> torch.device:
    """Return the device of that name; "auto" is the GPU if there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        if device.type == "meta":
            raise RuntimeError("it holds no numbers")
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise InputError(f"device '{name}' cannot be used here: {str(error).splitlines()[0]}") from None
    return device
