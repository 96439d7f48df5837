"""What is counted, and that it holds nothing of what people write."""

import os
import re
import signal
import sys
import urllib.request
from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families
from tests.server.conftest import ask, client_of, running, until, workers_of

ROOT = Path(__file__).parents[2]
SECRET = "xyzzy"


def samples(text):
    """(name, labels) → value, as Prometheus itself would read it."""
    families = text_string_to_metric_families(text)
    return {(s.name, *sorted(s.labels.items())): s.value for family in families for s in family.samples}


def value(text, name, **labels):
    return samples(text).get((name, *sorted(labels.items())))


def test_requests_words_and_labels_are_counted(client, fitted_flat):
    texts = ["an apple", f"{SECRET} saw the the"]
    for _ in range(3):
        client.post("/predict", json={"texts": texts})
    client.post("/predict", json={"texts": SECRET, "model": SECRET})
    client.get(f"/{SECRET}", headers={"traceparent": SECRET})
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=")
    text = answer.text
    assert value(text, "mpad_requests_total", endpoint="/predict", status="200") == 3
    assert value(text, "mpad_requests_total", endpoint="/predict", status="404") == 1
    assert value(text, "mpad_requests_total", endpoint="(unknown)", status="404") == 1
    assert value(text, "mpad_request_seconds_count", endpoint="/predict") == 4
    assert value(text, "mpad_batch_documents_sum", model="flat") == 6
    assert value(text, "mpad_batch_documents_bucket", model="flat", le="2.0") == 3
    assert value(text, "mpad_words_total", model="flat") == 18  # twice "the", thrice asked
    known = [word in fitted_flat.model_.vocabulary for word in "an apple saw the the".split()]
    assert value(text, "mpad_unknown_words_total", model="flat") == 18 - 3 * sum(known) and not all(known)
    predicted = fitted_flat.predict(texts).tolist()
    for label in ("fruit", "tool"):
        assert (value(text, "mpad_labels_total", model="flat", label=label) or 0) == 3 * predicted.count(label)
    assert value(text, "mpad_memory_bytes", kind="rss") > value(text, "mpad_memory_bytes", kind="pss") > 1e7


def test_drift_is_compared_with_reference_documents(models, fitted_flat, fruit_corpus):
    texts = fruit_corpus[0][:40]
    with client_of(models, reference=texts) as client:
        client.post("/predict", json={"texts": ["zzkq blorp", "an apple"]})
        text = client.get("/metrics").text
    predicted = fitted_flat.predict(texts).tolist()
    for label in ("fruit", "tool"):
        share = value(text, "mpad_reference_label_share", model="flat", label=label)
        assert share == pytest.approx(predicted.count(label) / 40)
    mean = fitted_flat.predict_proba(texts).max(1).mean()
    assert value(text, "mpad_reference_confidence", model="flat") == pytest.approx(mean, abs=1e-6)
    assert value(text, "mpad_reference_unknown_share", model="flat") < 0.2
    assert value(text, "mpad_batch_documents_sum", model="flat") == 2
    total = fitted_flat.predict_proba(["zzkq blorp", "an apple"]).max(1).sum()
    assert value(text, "mpad_confidence_total", model="flat") == pytest.approx(total, abs=1e-5)
    assert value(text, "mpad_reference_confidence", model="svm") is None, "it has no probabilities"


def test_the_alerts_use_metrics_that_there_are(models):
    rules = yaml.safe_load((ROOT / "deploy" / "alerts.yml").read_text())["groups"][0]["rules"]
    with client_of(models, reference=["an apple"]) as served:
        served.post("/predict", json={"texts": ["an apple"]})
        names = {name for name, *_ in samples(served.get("/metrics").text)}
    used = {name for rule in rules for name in re.findall(r"mpad_\w+", rule["expr"])}
    assert len(rules) == 3 and used <= names, used - names


def test_no_text_of_a_user_stands_in_a_metric(client):
    for path, body in {
        "/predict": {"texts": SECRET},
        "/explain": {"text": SECRET},
        "/what-if": {"text": SECRET},
    }.items():
        assert client.post(path, json=body).status_code == 200
        client.post(path, json={**body, "model": SECRET, SECRET: SECRET}, headers={"x-api-key": SECRET})
        client.post(f"{path}?{SECRET}={SECRET}", json=body, headers={"user-agent": SECRET, "referer": SECRET})
        client.post(f"{path}/{SECRET}", content=SECRET.encode())
    client.post("/explain", json={"text": "a", "label": SECRET})
    assert SECRET not in client.get("/metrics").text


def test_models_are_named_with_version_and_digest(client, folders):
    import hashlib
    from pathlib import Path

    from mpad._version import __version__

    text = client.get("/metrics").text
    for folder, kind in zip(folders, ("mpad", "mpad", "tfidf-svm"), strict=True):
        digest = hashlib.sha256(Path(folder, "SHA256SUMS").read_bytes()).hexdigest()
        named = {"model": Path(folder).name, "kind": kind, "version": __version__, "digest": digest}
        assert value(text, "mpad_model_info", **named) == 1
        assert digest in client.get("/info").text and folder not in text


def test_many_labels_are_counted_one_by_one(fruit_corpus, tmp_path):
    from mpad import MPADClassifier
    from mpad.server.models import load_all

    texts, labels = fruit_corpus
    many = [[label, "all"] for label in labels]
    options = {"preset": "paper", "hidden": 8, "vector_size": 8, "max_epochs": 3, "random_state": 0, "device": "cpu"}
    MPADClassifier(vectors=None, **options).fit(texts, many).save(tmp_path / "many")
    with client_of(load_all([str(tmp_path / "many")])) as client:
        client.post("/predict", json={"texts": texts[:9]})
        assert value(client.get("/metrics").text, "mpad_labels_total", model="many", label="all") == 9


def test_the_key_is_asked_for_here_too(models):
    with client_of(models, key="sesame") as client:
        assert client.get("/metrics").status_code == 401
        answer = client.get("/metrics", headers={"authorization": "Bearer sesame"})
        assert value(answer.text, "mpad_requests_total", endpoint="/metrics", status="401") == 1


def metrics(address):
    with urllib.request.urlopen(f"{address}/metrics", timeout=300) as answer:
        return answer.read().decode()


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_several_workers_are_summed_and_the_dead_keep_their_counts(folders):
    with running(folders[0], "--quiet", "--workers", "2") as (address, process):
        for _ in range(40):  # each on a connection of its own: either worker may take it
            ask(address, body={"texts": ["an apple", "a saw"]})
        # a request is counted once its answer is on the way: the last one may still be missing
        assert until(lambda: value(metrics(address), "mpad_requests_total", endpoint="/predict", status="200") == 40)
        pages = [metrics(address) for _ in range(6)]
        assert {value(page, "mpad_requests_total", endpoint="/predict", status="200") for page in pages} == {40}
        assert {value(page, "mpad_batch_documents_sum", model="flat") for page in pages} == {80}
        assert {sum(v for k, v in samples(page).items() if k[0] == "mpad_model_info") for page in pages} == {2}
        os.kill(workers_of(process)[0], signal.SIGKILL)
        until(lambda: "worker" in process.stderr.readline())
        until(lambda: len(workers_of(process)) == 2)
        assert until(lambda: sum(v for k, v in samples(metrics(address)).items() if k[0] == "mpad_model_info") == 2)
        text = metrics(address)
        assert value(text, "mpad_requests_total", endpoint="/predict", status="200") == 40
        assert value(text, "mpad_memory_bytes", kind="pss") < 2e9 and not re.search(r"pid=", text)


def test_connections_that_are_refused_are_counted(folders):
    import socket

    with running(folders[0], "--quiet", "--request-timeout", "1") as (address, _):
        host, port = address.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=200) as connection:
            connection.sendall(b"POST /pre")
            assert connection.recv(100).startswith(b"HTTP/1.1 408 ")
        assert value(metrics(address), "mpad_requests_total", endpoint="(connection)", status="408") == 1
