"""A server over small models, in this process and in one of its own."""

import json
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="needs the extra 'serve'")
pytest.importorskip("uvicorn", reason="needs the extra 'serve'")
pytest.importorskip("prometheus_client", reason="needs the extra 'serve'")

from starlette.testclient import TestClient

from mpad.paper import zoo
from mpad.server.app import make_app
from mpad.server.models import load_all
from mpad.server.settings import Settings


@pytest.fixture(scope="session")
def folders(fitted_flat, fruit_corpus, tmp_path_factory):
    """An mpad, a hierarchical one and a rival without probabilities, saved."""
    from mpad import MPADClassifier

    root = tmp_path_factory.mktemp("models")
    fitted_flat.save(root / "flat")
    options = {"hidden": 8, "vector_size": 8, "max_epochs": 3, "random_state": 0, "device": "cpu"}
    MPADClassifier("clique", **options).fit(*fruit_corpus).save(root / "clique")
    zoo.make("tfidf-svm").fit(*fruit_corpus).save(root / "svm")
    return [str(root / name) for name in ("flat", "clique", "svm")]


@pytest.fixture(scope="session")
def models(folders):
    return load_all(folders)


@contextmanager
def client_of(models, log_event=print, **options):
    lines = []
    app = make_app(models, Settings(**options), lines.append, log_event)
    with TestClient(app, base_url="http://localhost") as client:
        client.lines = lines
        yield client


@pytest.fixture
def client(models):
    with client_of(models) as client:
        yield client


@contextmanager
def running(*arguments, stdin=subprocess.DEVNULL):
    """`mpad serve` in a process of its own: (its address, the process)."""
    command = [sys.executable, "-c", "from mpad.cli.main import main; main()", "serve", *arguments, "--port", "0"]
    process = subprocess.Popen(command, stdin=stdin, stderr=subprocess.PIPE, text=True)
    try:
        line = process.stderr.readline()
        while ": text from " in line:  # of --examples
            line = process.stderr.readline()
        assert line.startswith("serving"), line + process.stderr.read()
        yield line.rsplit(" ", 1)[1].strip(), process
    finally:
        process.terminate()
        process.wait(1200)
        process.stderr.close()


def workers_of(process):
    """Ids of the processes that answer for a server of several workers."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [int(pid) for pid in children if "spawn_main" in Path(f"/proc/{pid}/cmdline").read_text()]


def until(condition, seconds=300):
    """Wait for a condition; its last value."""
    end = time.monotonic() + seconds
    while not (value := condition()) and time.monotonic() < end:
        time.sleep(0.05)
    return value


def ask(address, path="/predict", body=None, headers=None):
    """The JSON that a running server answers."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address + path, data, {"content-type": "application/json", **(headers or {})})
    with urllib.request.urlopen(request, timeout=300) as answer:
        return json.load(answer)
