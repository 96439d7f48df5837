"""Trainings beside one another on the same cores: how long each takes, against one alone."""

import os
import subprocess
import sys
import time

_CODE = """
import time
from mpad import MPADClassifier
import random
g = random.Random(0)
texts = [" ".join(f"w{g.randrange(3000)}" for _ in range(10)) for _ in range(4000)]
start = time.perf_counter()
MPADClassifier(max_epochs=6, patience=None, random_state=0, device="cpu").fit(texts, [k % 2 for k in range(4000)])
print(time.perf_counter() - start)
"""


def beside(most: int = 4) -> list[dict[str, object]]:
    """Seconds of each of 1, 2, 4 … trainings at once: as it is, and as torch's threads wait by default."""
    rows: list[dict[str, object]] = []
    for setting, more in (("as it is", {}), ("threads that spin", {"GOMP_SPINCOUNT": "300000"})):
        number = 1
        while number <= most:
            found = _run(number, {**os.environ, **more})
            rows.append({"threads wait": setting, "at once": number, "seconds each": round(sum(found) / number, 1)})
            number *= 2
    return rows


def _run(number: int, environment: dict[str, str]) -> list[float]:
    started = [
        subprocess.Popen([sys.executable, "-c", _CODE], stdout=subprocess.PIPE, env=environment, text=True)
        for _ in range(number)
    ]
    time.sleep(0)
    return [float(process.communicate()[0]) for process in started]
