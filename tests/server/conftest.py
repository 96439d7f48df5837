"""A server over small models, in this process and in one of its own."""

import subprocess
import sys
from contextlib import contextmanager

import pytest

pytest.importorskip("fastapi", reason="needs the extra 'serve'")
pytest.importorskip("uvicorn", reason="needs the extra 'serve'")

from starlette.testclient import TestClient

from mpad import zoo
from mpad.server.app import make_app
from mpad.server.models import load_all


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
def client_of(models, **options):
    lines = []
    with TestClient(make_app(models, log=lines.append, **options), base_url="http://localhost") as client:
        client.lines = lines
        yield client


@pytest.fixture
def client(models):
    with client_of(models) as client:
        yield client


@contextmanager
def running(*arguments):
    """`mpad serve` in a process of its own: (its address, the process)."""
    command = [sys.executable, "-c", "from mpad.cli.main import main; main()", "serve", *arguments, "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        line = process.stderr.readline()
        assert line.startswith("serving"), line + process.stderr.read()
        yield line.rsplit(" ", 1)[1].strip(), process
    finally:
        process.terminate()
        process.wait(30)
        process.stderr.close()
