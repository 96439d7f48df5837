"""`python -m security.coverage_guided TARGET [libFuzzer options]`: atheris looks for inputs that reach new code.

What it finds is kept under `.fuzz/TARGET`; a case that fails is written beside it, and belongs into security/corpus.
Needs `pip install atheris`.
"""

import sys
from pathlib import Path

from mpad.extras import require

TESTED = [
    "mpad.text",
    "mpad.files",
    "mpad.training.checkpoint",
    "mpad.server",
    "mpad.storage.model_folder",
    "mpad.data.labels",
]


def main() -> None:
    """Fuzz one target until its time is over."""
    atheris = require("atheris", extra="fuzz")
    with atheris.instrument_imports(include=TESTED):
        from security.targets import TARGETS

        target = TARGETS[sys.argv[1].replace("-", " ").replace("http", "HTTP")]
        seeds = target.seeds()
        target.check(seeds[0])  # imports what it needs, so that it is instrumented
    found = Path(".fuzz") / sys.argv[1]
    found.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds):
        (found / f"seed-{number}").write_bytes(seed)
    limits = ["-timeout=5", "-rss_limit_mb=2048", "-max_len=20000", f"-artifact_prefix={found}-failed-"]

    def one(data: bytes) -> None:
        target.check(data)

    atheris.Setup([sys.argv[0], str(found), *limits, *sys.argv[2:]], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
