"""Versions, compiled code, threads, GPU and precision of this installation, for bug reports."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version

import torch

from mpad import native
from mpad._version import __version__
from mpad.kernels import cpu, cuda

_PACKAGES = ("torch", "numpy", "scikit-learn", "safetensors", "triton")


def environment() -> dict[str, str]:
    """Return facts about the installation by name, as text."""
    facts = {"mpad": __version__, "python": platform.python_version(), "platform": platform.platform()}
    return {**facts, **{name: _version(name) for name in _PACKAGES}, **_processor(), **_gpu()}


def show_versions() -> None:
    """Print versions, compiled code, threads and GPU of this installation."""
    facts = environment()
    widest = max(map(len, facts))
    print("\n".join(f"{name:<{widest}}  {fact}" for name, fact in facts.items()))  # noqa: T201, printing is its purpose


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _processor() -> dict[str, str]:
    lanes = {16: "AVX-512", 8: "AVX2", 4: "128-bit vectors"}
    answering = native.missing or f"yes ({lanes[native.lanes()]})"
    training = native.missing or ("yes" if cpu.library() is not None else "no: torch's OpenMP was not found")
    waiting = os.environ.get("OMP_WAIT_POLICY") or f"spin {os.environ.get('GOMP_SPINCOUNT', 'as long as they like')}"
    return {
        "compiled code, answering": answering,
        "compiled code, training": training,
        "threads": f"{torch.get_num_threads()} of {os.cpu_count()} cores; those that wait: {waiting}",
        "precision on a CPU": precision("cpu"),
    }


def _gpu() -> dict[str, str]:
    if not torch.cuda.is_available():
        return {"GPU": "none that torch can use"}
    kernels_here = "yes (Triton)" if cuda.available() else "no: Triton is not installed"
    return {"GPU": torch.cuda.get_device_name(), "GPU kernels": kernels_here, "precision on a GPU": precision("cuda")}


def precision(device: str) -> str:
    """Describe the precision of training on a device; "auto" is the device that training would choose."""
    if device == "cpu" or (device == "auto" and not torch.cuda.is_available()):
        return "float32; float64 where the network is"
    return "float32 sums; products in TF32; factors of weight gradients in bfloat16, where kernels compute them"
