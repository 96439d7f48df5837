"""`python -m benchmarks.speed.serving`: a running server under load, on loopback; writes serving.json.

`--clients 100 --seconds 60` by default; `--model FOLDER`, or one is trained on the embedded corpus first. Each client
keeps one connection and sends one document of 20 words after the other. Let nothing else run on the machine.
"""

import argparse
import asyncio
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import numpy as np

from benchmarks import results
from benchmarks.corpus import MADE_UP
from benchmarks.results import Row

WORDS = 20  # of a document


@dataclass
class Tally:
    """What clients saw."""

    latencies: list[float] = field(default_factory=list)  # seconds
    failed: int = 0


class Client(asyncio.Protocol):
    """Sends a request, waits for all of its answer, sends the next; no library between, so as to measure the server."""

    def __init__(self, requests: list[bytes], tally: Tally, until: float) -> None:
        self._requests, self._tally, self._until = requests, tally, until
        self._received = b""
        self.done = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is none by class
        self._send()

    def _send(self) -> None:
        now = time.perf_counter()
        if now >= self._until:
            self._transport.close()
            return
        self._sent = now
        self._transport.write(random.choice(self._requests))

    def data_received(self, data: bytes) -> None:
        """Read until the answer is whole."""
        self._received += data
        head, found, body = self._received.partition(b"\r\n\r\n")
        if not found:
            return
        length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
        if len(body) < length:
            return
        self._received = b""
        self._tally.latencies.append(time.perf_counter() - self._sent)
        self._tally.failed += not head.startswith(b"HTTP/1.1 200")
        self._send()

    def connection_lost(self, error: Exception | None) -> None:
        """End; an answer that never came counts as failed."""
        self._tally.failed += error is not None or bool(self._received)
        if not self.done.done():
            self.done.set_result(None)


async def load(port: int, requests: list[bytes], clients: int, seconds: float) -> Tally:
    """Let clients run for a while."""
    tally, loop, until = Tally(), asyncio.get_running_loop(), time.perf_counter() + seconds
    made = [
        await loop.create_connection(lambda: Client(requests, tally, until), "127.0.0.1", port) for _ in range(clients)
    ]
    await asyncio.gather(*[client.done for _, client in made])
    return tally


@contextmanager
def serving(model: str, *options: str) -> Iterator[tuple[int, int]]:
    """A server in a process of its own: its id, and the port that it listens on."""
    command = [sys.executable, "-c", "from mpad.cli.main import main; main()"]
    command += ["serve", model, "--port", "0", "--quiet", *options]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert server.stderr is not None
        yield server.pid, int(server.stderr.readline().rsplit(":", 1)[1])
    finally:
        server.terminate()
        server.wait(60)


def main() -> None:
    """Start the server, load it, and write what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="folder of a fitted model")
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--flat", type=int, default=100_000, help="requests over which memory is watched")
    asked = parser.parse_args()
    results.check_clean()
    with tempfile.TemporaryDirectory() as folder:
        model = asked.model or _train(Path(folder) / "model")
        with serving(model) as (pid, port):
            rows = _measure(pid, port, asked.clients, asked.seconds, asked.flat)
    results.write({"A server under load": results.on(MADE_UP, rows)}, "serving")


def _measure(pid: int, port: int, clients: int, seconds: float, flat: int) -> list[Row]:
    requests = make_requests()
    asyncio.run(load(port, requests, clients, 3.0))  # warm
    before, total, samples = _memory(pid), 0, []
    tally = asyncio.run(load(port, requests, clients, seconds))
    total += len(tally.latencies)
    samples.append(_memory(pid))
    failed = tally.failed
    while total < flat:
        more = asyncio.run(load(port, requests, clients, 10.0))
        total, failed = total + len(more.latencies), failed + more.failed
        samples.append(_memory(pid))
    rate, p50, p99 = len(tally.latencies) / seconds, *np.percentile(tally.latencies, [50, 99])
    return [
        Row(
            f"predictions a second, {clients} clients, {WORDS}-word documents, one a request, {seconds:.0f} s",
            f"{rate:,.0f}",
            target="at least 2,000",
            note="server and clients share the machine's cores",
        ),
        Row(
            "time to answer, median and 99th percentile",
            f"{1000 * p50:.0f} and {1000 * p99:.0f} ms",
            target="p99 < 150 ms",
        ),
        Row("failed requests", f"{failed} of {total:,}", target="0"),
        Row(
            f"memory of the server before and after {total:,} requests",
            f"{before:.0f} and {samples[-1]:.0f} MB",
            target="flat",
            note=f"on the way: {', '.join(f'{sample:.0f}' for sample in samples)} MB",
        ),
    ]


def make_requests() -> list[bytes]:
    """Requests for one document each, of words of the embedded corpus."""
    from mpad import load_dataset

    words = [word for text in load_dataset("docstrings").test.texts for word in text.split()]
    made = []
    for start in range(0, min(len(words) - WORDS, 200 * WORDS), WORDS):
        body = json.dumps({"texts": " ".join(words[start : start + WORDS])}).encode()
        head = "POST /predict HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        made.append(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
    return made


def _memory(pid: int) -> float:
    """Resident megabytes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return float("nan")


def _train(folder: Path) -> str:
    from mpad import MPADClassifier, load_dataset

    data = load_dataset("docstrings")
    MPADClassifier(max_epochs=3, random_state=0, device="cpu").fit(data.train.texts, data.train.labels).save(folder)
    return str(folder)


if __name__ == "__main__":
    main()
