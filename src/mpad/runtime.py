"""Deprecated name of `mpad.inference`."""

import warnings

from mpad.inference import *  # noqa: F403
from mpad.inference import __all__ as __all__

warnings.warn("mpad.runtime is now mpad.inference", DeprecationWarning, stacklevel=2)
