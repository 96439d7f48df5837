"""The C code with AddressSanitizer and UndefinedBehaviorSanitizer: built, and its tests run on it.

The sanitizers' library is loaded before Python; what they find ends the process, and so the run.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "mpad" / "native" / "kernels.c"
TESTS = [
    "tests/kernels",
    "tests/inference",
    "tests/text/test_compiled.py",
    "tests/graph",
    "tests/training/test_adam.py",
]
FLAGS = ["-O1", "-g", "-std=gnu11", "-fno-omit-frame-pointer", "-fno-math-errno", "-fPIC", "-shared"]


def main() -> None:
    """Build, then test; the exit code is pytest's."""
    compiler = os.environ.get("CC", "gcc")
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "kernels.so"
        sanitizers = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]
        subprocess.run([compiler, *FLAGS, *sanitizers, str(SOURCE), "-o", str(library), "-lm"], check=True)
        runtimes = [_path_of(compiler, name) for name in ("libasan.so", "libubsan.so")]
        environment = {
            **os.environ,
            "MPAD_NATIVE": str(library),
            "LD_PRELOAD": " ".join(runtimes),
            "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1",  # Python itself leaks at its end
            "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
            "PYTHONMALLOC": "malloc",
        }
        command = [sys.executable, "-m", "pytest", *(sys.argv[1:] or TESTS), "-o", "addopts=--import-mode=importlib -q"]
        sys.exit(subprocess.run(command, env=environment, cwd=ROOT).returncode)


def _path_of(compiler: str, name: str) -> str:
    asked = subprocess.run([compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True)
    return asked.stdout.strip()


if __name__ == "__main__":
    main()
