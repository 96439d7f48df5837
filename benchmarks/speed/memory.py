"""Peak memory while training: with and without one very long document, each in a process of its own."""

import json
import re
import subprocess
import sys
from pathlib import Path

from benchmarks.corpus import MADE_UP
from benchmarks.results import Row

_LONG = 100_000


def run() -> list[Row]:
    """A 100,000-word document among short ones must cost its own share, not batch × longest."""
    short, alone, both = (_measure(kind) for kind in ("short", "alone", "both"))
    base = _measure("nothing")
    own = alone["peak"] - base["peak"]
    return [
        Row(
            "peak memory, training on 2,560 20-word documents",
            f"{short['peak']:.0f} MB",
            note=f"{base['peak']:.0f} MB before",
            text=MADE_UP,
        ),
        Row(
            f"the same with one {_LONG:,}-word document among them",
            f"{both['peak']:.0f} MB",
            note=f"{both['peak'] - short['peak']:+.0f} MB; that document alone takes {own:.0f} MB",
            target=f"at most +{own:.0f} MB",
            ratio=(both["peak"] - short["peak"]) / own,
            text=MADE_UP,
        ),
    ]


def _measure(kind: str) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.speed.memory", kind], capture_output=True, text=True, check=True
    )
    record: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return record


def _train(kind: str) -> None:
    import torch

    from benchmarks.corpus import one_document, short_documents
    from benchmarks.speed.training import our_epoch
    from mpad.config import MPADConfig
    from mpad.graph import graphs_of_words

    torch.set_num_threads(1)
    texts = short_documents(2_560).texts if kind in ("short", "both", "nothing") else []
    if kind in ("alone", "both"):
        texts = [*texts, one_document(_LONG)]
    if kind == "alone":
        texts = [*texts, "a b", "c d"]
    graphs, vocabulary = graphs_of_words(texts)
    epoch = our_epoch(MPADConfig(2, 300, vocabulary.n_rows), graphs, [k % 2 for k in range(len(graphs))])
    if kind != "nothing":
        for _ in range(2):
            epoch()


def peak_mb() -> float:
    """Highest resident memory of this process in MB (ru_maxrss would count its parent's)."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found, "this benchmark reads Linux's /proc"
    return int(found.group(1)) / 1024


if __name__ == "__main__":
    _train(sys.argv[1])
    print(json.dumps({"peak": peak_mb()}))
