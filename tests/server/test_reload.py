"""A folder that changes while it is served."""

import json
import shutil
import signal
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.server.conftest import ask, client_of, running, until

from mpad.server.models import load_all

TEXT = "the apple and the pear and the plum"


@pytest.fixture(scope="module")
def both(fitted_flat, fruit_corpus):
    """A model, and one that learnt the opposite."""
    texts, labels = fruit_corpus
    from sklearn.base import clone

    opposite = clone(fitted_flat).fit(texts, ["tool" if label == "fruit" else "fruit" for label in labels])
    assert fitted_flat.predict([TEXT])[0] != opposite.predict([TEXT])[0]
    return fitted_flat, opposite


class Crowd:
    """Clients that ask until they are told to stop: what each was answered, in its order."""

    def __init__(self, answer, clients=8):
        self._answer, self._stop = answer, threading.Event()
        self._pool = ThreadPoolExecutor(clients)
        self._asking = [self._pool.submit(self._ask) for _ in range(clients)]

    def _ask(self):
        labels = []
        while not self._stop.is_set():
            labels.append(self._answer())
        return labels

    def stop(self):
        """All answers of each client; an answer that failed is raised here."""
        self._stop.set()
        return [asking.result(60) for asking in self._asking]


def label_of(address):
    return ask(address, body={"texts": TEXT})["predictions"][0]["label"]


def digest_of(address):
    return ask(address, "/info")["models"][0]["digest"]


@pytest.mark.parametrize("workers", [1, 2])
def test_no_request_fails_while_a_model_is_replaced_and_answers_change(both, tmp_path, workers):
    first, second = both
    first.save(tmp_path / "model")
    options = "--quiet", "--workers", str(workers), "--reload-every", "0.2"
    with running(str(tmp_path / "model"), *options) as (address, process):
        before, after = (model.predict([TEXT])[0] for model in both)
        assert label_of(address) == before
        crowd = Crowd(lambda: label_of(address))
        second.save(tmp_path / "model")
        lines = [json.loads(process.stderr.readline()) for _ in range(workers)]
        assert [line["event"] for line in lines] == ["reloaded"] * workers
        assert len({line["digest"] for line in lines}) == 1
        answers = crowd.stop()
        assert {label_of(address) for _ in range(20)} == {after}
        assert set().union(*answers) == {before, after} and min(map(len, answers)) > 1
        if workers == 1:  # and none changes back
            assert all(labels == sorted(labels, key=[before, after].index) for labels in answers)


def test_a_damaged_folder_is_refused_in_one_line_and_the_old_one_answers(both, tmp_path):
    first, second = both
    first.save(tmp_path / "model")
    second.save(tmp_path / "next")
    weights = tmp_path / "next" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-8] + b"whatever")
    lines = []
    options = {"reload_every": 0.05, "log_event": lines.append}
    with client_of(load_all([str(tmp_path / "model")]), **options) as client:
        digest = client.get("/info").json()["models"][0]["digest"]
        (tmp_path / "model").rename(tmp_path / "old")
        (tmp_path / "next").rename(tmp_path / "model")
        assert until(lambda: lines)
        threading.Event().wait(0.5)  # it is looked at again, but not told again
        (line,) = lines[-1:]
        assert line["event"] == "refused" and "checksum" in line["error"] and line["model"] == "model"
        assert len([one for one in lines if "checksum" in one["error"]]) == 1
        label = client.post("/predict", json={"texts": TEXT}).json()["predictions"][0]["label"]
        assert label == first.predict([TEXT])[0]
        assert client.get("/info").json()["models"][0]["digest"] == digest
        shutil.rmtree(tmp_path / "model")
        second.save(tmp_path / "model")
        assert until(lambda: lines[-1]["event"] == "reloaded")
        label = client.post("/predict", json={"texts": TEXT}).json()["predictions"][0]["label"]
        assert label == second.predict([TEXT])[0]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_hangup_has_it_look_at_once(both, tmp_path, workers):
    first, second = both
    first.save(tmp_path / "model")
    with running(str(tmp_path / "model"), "--quiet", "--workers", str(workers)) as (address, process):
        second.save(tmp_path / "model")
        assert label_of(address) == first.predict([TEXT])[0]
        process.send_signal(signal.SIGHUP)
        for _ in range(workers):
            assert json.loads(process.stderr.readline())["event"] == "reloaded"
        assert {label_of(address) for _ in range(20)} == {second.predict([TEXT])[0]}
        (tmp_path / "model" / "vocabulary.json").write_text("[]")
        process.send_signal(signal.SIGHUP)  # nothing else has changed: only checksums could tell, and no one looks
        assert {label_of(address) for _ in range(20)} == {second.predict([TEXT])[0]}


@pytest.mark.parametrize("workers", [1, 2])
def test_a_server_ends_with_its_terminal(folders, workers):
    import os

    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        pytest.skip("started by nohup, as a server would be: it outlives its terminal")
    outer, inner = os.openpty()
    try:
        with running(folders[0], "--quiet", "--workers", str(workers), stdin=inner) as (_, process):
            process.send_signal(signal.SIGHUP)
            assert process.wait(1200) in (0, -signal.SIGHUP)
    finally:
        os.close(outer)
        os.close(inner)


def test_metrics_name_the_model_that_answers(both, tmp_path):
    first, second = both
    first.save(tmp_path / "model")
    lines = []
    with client_of(load_all([str(tmp_path / "model")]), reload_every=0.05, log_event=lines.append) as client:
        old = client.get("/info").json()["models"][0]["digest"]
        second.save(tmp_path / "model")
        assert until(lambda: lines) and lines[0]["digest"] != old
        page = client.get("/metrics").text
        assert page.count("mpad_model_info{") == 1 and lines[0]["digest"] in page and old not in page


def test_the_old_model_is_let_go(both, tmp_path):
    first, second = both
    first.save(tmp_path / "model")
    lines, models = [], load_all([str(tmp_path / "model")])
    old = weakref.ref(models["model"]), weakref.ref(models["model"].model.network)
    with client_of(models, reload_every=0.05, log_event=lines.append) as client:
        models.clear()
        for body in ({"texts": TEXT}, {"text": TEXT}):
            assert client.post("/predict" if "texts" in body else "/explain", json=body).status_code == 200
        assert all(one() is not None for one in old)
        second.save(tmp_path / "model")
        assert until(lambda: lines) and until(lambda: not any(one() for one in old))
