"""A server with 100 good clients while 20 others misbehave: half requests, nonsense, rude leaves, slow readers."""

import asyncio
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.speed.serving import load

from security.targets import small_model

_HEAD = b"POST /predict HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
_RUDE = [
    b"",
    b"POST /pre",
    _HEAD + b"content-length: 5000\r\n\r\n{",
    b"\x00\xff\r\n\r\n",
    _HEAD + b"content-length: 99999999\r\n\r\n",
    _HEAD + b"transfer-encoding: chunked\r\n\r\nffffffff\r\n{",
    _HEAD + b'content-length: 12\r\n\r\n{"texts": 1}' * 50,
    b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
    _HEAD.replace(b"localhost", b"evil.example") + b"content-length: 2\r\n\r\n{}",
]


async def _misbehave(port: int, until: float, seed: int) -> int:
    generator, sent = random.Random(seed), 0
    while time.perf_counter() < until:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(generator.choice(_RUDE))
            sent += 1
            await asyncio.sleep(generator.choice((0, 0.01, 0.2, 1.0)))
            if generator.random() < 0.5:
                await asyncio.wait_for(reader.read(1000), 0.5)
            writer.close() if generator.random() < 0.5 else writer.transport.abort()
        except (OSError, TimeoutError):
            pass
    return sent


async def _crowd(port: int, requests: list[bytes], good: int, rude: int, seconds: float) -> tuple[int, int, int]:
    until = time.perf_counter() + seconds
    ours = asyncio.create_task(load(port, requests, good, seconds))
    others = await asyncio.gather(*[_misbehave(port, until, number) for number in range(rude)])
    tally = await ours
    return len(tally.latencies), tally.failed, sum(others)


def crowd(seconds: float, good: int = 100, rude: int = 20) -> dict[str, object]:
    """Failed good requests, and the server's memory at the start and at the end."""
    body = b'{"texts": ["a good film with some more words in it, to be read by the model"]}'
    request = _HEAD + b"content-length: " + str(len(body)).encode() + b"\r\n\r\n" + body
    with tempfile.TemporaryDirectory() as folder:
        small_model().save(Path(folder) / "m")
        command = [sys.executable, "-c", "from mpad.cli.main import main; main()", "serve", str(Path(folder) / "m")]
        options = ["--port", "0", "--quiet", "--request-timeout", "5"]
        server = subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True)
        try:
            assert server.stderr is not None
            port = int(server.stderr.readline().rsplit(":", 1)[1])
            asyncio.run(_crowd(port, [request], good, rude, min(5.0, seconds)))
            before = _megabytes(server.pid)
            answered, failed, bad = asyncio.run(_crowd(port, [request], good, rude, seconds))
            after = _megabytes(server.pid)
            start = time.perf_counter()
            server.terminate()
            server.wait(60)
            stopped = time.perf_counter() - start
            said = server.stderr.read()
        finally:
            server.kill()
    return {
        "seconds": seconds,
        "good requests": answered,
        "failed": failed,
        "bad requests": bad,
        "megabytes before": before,
        "megabytes after": after,
        "seconds to stop": round(stopped, 1),
        "tracebacks": said.count("Traceback"),
    }


def _megabytes(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return round(int(line.split()[1]) / 1024, 1)
    return 0.0
