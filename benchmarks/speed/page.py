"""What a person waits for: an explanation of 300 words, and the page over a CSV file of 100,000 rows, in Chromium.

`python -m benchmarks.speed.page` writes page.json and RESULTS.md.
"""

import csv
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks import results
from benchmarks.results import Row
from mpad import MPADClassifier, load_dataset

_FITTED, _WORDS, _EXPLAINED = 2_000, 300, 20
_ROWS, _FRAMES = 100_000, 300
_SCROLL = """
const done = arguments[arguments.length - 1], body = document.querySelector('#space-table .body'), times = [];
let last = 0, step = 0;
function frame(now) {
  if (last) times.push(now - last);
  last = now;
  body.scrollTop = (body.scrollTop + (step % 50 === 49 ? 200000 : 300)) % body.scrollHeight;
  step += 1;
  step > arguments_frames ? done(times) : requestAnimationFrame(frame);
}
requestAnimationFrame(frame);
"""


def main() -> None:
    """Fit the default model on the embedded corpus, and measure."""
    sections: dict[str, Callable[[Path, MPADClassifier], list[Row]]] = {
        f"Explaining {_WORDS} words": _explaining,
        f"The page, {_ROWS:,} rows": _page,
    }
    data = load_dataset("docstrings").train
    texts, labels = data.texts[:_FITTED], (data.labels or [])[:_FITTED]
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "docstrings"
        classifier = MPADClassifier(random_state=0, verbose=False).fit(texts, labels)
        classifier.save(model)
        measured = {title: results.on("real", section(model, classifier)) for title, section in sections.items()}
    results.write(measured, "page")


def _explaining(folder: Path, classifier: MPADClassifier) -> list[Row]:
    words = " ".join(load_dataset("docstrings").test.texts).split()
    texts = [" ".join(words[k * _WORDS : (k + 1) * _WORDS]) for k in range(_EXPLAINED)]
    first, usual = _timed(lambda: classifier.explain(texts[0])), torch.get_num_threads()
    walls: dict[int, list[float]] = {}
    cpus: dict[int, list[float]] = {}
    for text in texts:
        for threads in {1, usual}:  # in turn, so that a noisy machine slows both alike
            torch.set_num_threads(threads)
            cpu = time.process_time()
            walls.setdefault(threads, []).append(_timed(partial(classifier.explain, text)))
            cpus.setdefault(threads, []).append(time.process_time() - cpu)
    torch.set_num_threads(usual)
    return [
        Row(
            f"classifier.explain, default model, {_EXPLAINED} texts, threads: {threads}",
            f"{1e3 * statistics.median(own):.0f} ms, slowest {1e3 * max(own):.0f}",
            target="300 ms",
            note=f"{1e3 * statistics.median(cpus[threads]):.0f} ms of CPU; the very first took {1e3 * first:.0f} ms",
        )
        for threads, own in walls.items()
    ]


def _page(folder: Path, classifier: MPADClassifier) -> list[Row]:
    source = folder.parent / "rows.csv"
    texts = load_dataset("docstrings").train.texts
    with source.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "text"])
        writer.writerows([k, f"{texts[k % len(texts)][:200]} {k}"] for k in range(_ROWS))
    with served(folder) as (address, server), browser() as driver:
        driver.get(address)
        before = _memory(driver.service.process.pid)
        read = _timed(lambda: open_file(driver, source))
        scored = _timed(lambda: score(driver))
        driver.execute_script("window.gc && gc()")
        heap = driver.execute_script("return performance.memory.usedJSHeapSize") / 1e6
        grown = _memory(driver.service.process.pid) - before
        times = driver.execute_async_script(_SCROLL.replace("arguments_frames", str(_FRAMES)))
        searched = _timed(lambda: _search(driver))
        size = f"{source.stat().st_size / 1e6:.0f} MB"
        return [
            Row(f"open the file ({size})", f"{read:.1f} s"),
            Row("score all rows", f"{scored:.1f} s", note=f"the server then holds {_memory(server):.0f} MB"),
            Row("memory of the page", f"{heap:.0f} MB of JavaScript", note=f"browser grown by {grown:.0f} MB"),
            Row(
                f"scroll, {_FRAMES} frames",
                f"{statistics.median(times):.1f} ms a frame, 95 % below {sorted(times)[int(0.95 * len(times))]:.1f} ms",
                target="16.7 ms",
                note=f"slowest {max(times):.0f} ms",
            ),
            Row("find a word", f"{searched:.2f} s", note="filters all rows, and draws all that is shown"),
        ]


def _timed(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def until(driver: Any, script: str, seconds: float = 600) -> None:
    """Wait for an expression of the page to be true."""
    end = time.monotonic() + seconds
    while not driver.execute_script(f"return {script}"):
        if time.monotonic() > end:
            raise TimeoutError(f"the page does not come to: {script}")
        time.sleep(0.02)


def open_file(driver: Any, source: Path) -> None:
    """Open a CSV file on the page."""
    driver.find_element("id", "csv").send_keys(str(source))
    until(driver, "document.getElementById('said').textContent.includes('is read')")


def score(driver: Any) -> None:
    """Score all rows of the file that is open."""
    driver.find_element("id", "space-go").click()
    until(driver, "document.getElementById('said').textContent.includes('documents scored')")


def _search(driver: Any) -> None:
    driver.execute_script(
        "const s = document.getElementById('space-search'); s.value = 'matrix'; s.dispatchEvent(new Event('input'))"
    )


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, int]]:
    """A server of a model folder: its address, and the process."""
    command = [sys.executable, "-m", "mpad", "serve", str(folder), "--port", "0", "--quiet"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=dict(os.environ))
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        if not line.startswith("serving"):
            raise RuntimeError(line + process.stderr.read())
        yield line.rsplit(" ", 1)[1].strip(), process.pid
    finally:
        process.terminate()
        process.wait(30)


@contextmanager
def browser() -> Iterator[Any]:
    """Chromium, driven by selenium."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome") or ""
    flags = "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1280,1400"
    for flag in (*flags, "--enable-precise-memory-info", "--js-flags=--expose-gc"):
        options.add_argument(flag)
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    driver.set_script_timeout(600)
    try:
        yield driver
    finally:
        driver.quit()


def _memory(pid: int) -> float:
    """Megabytes that a process and its children have for themselves, and their share of what they share."""
    total = 0
    waiting = [pid]
    while waiting:
        own = waiting.pop()
        try:
            rollup = Path(f"/proc/{own}/smaps_rollup").read_text()
            for children in Path(f"/proc/{own}/task").glob("*/children"):
                waiting += map(int, children.read_text().split())
        except OSError:
            continue
        total += next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))
    return total / 1e3


if __name__ == "__main__":
    main()
