"""Whether it is up, whether it is ready, and under which trace a request was logged."""

import threading

import pytest
from tests.server.conftest import client_of

from mpad.server.middleware import read_trace

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


def test_a_server_is_ready_when_every_model_answers(client):
    for path, status in (("/healthz", "ok"), ("/readyz", "ready")):
        assert client.get(path).json() == {"status": status} and client.head(path).status_code == 200
    assert 'mpad_batch_documents_sum{model="flat"}' not in client.get("/metrics").text  # probes are no documents


@pytest.mark.parametrize("broken", ["raises", "hangs"])
def test_a_model_that_does_not_answer_is_not_ready_but_the_process_is_up(models, monkeypatch, broken):
    go_on = threading.Event()

    def fail(texts):
        if broken == "raises":
            raise ValueError("a secret")
        go_on.wait(300)

    monkeypatch.setattr("mpad.server.app._READY", 0.2)
    with client_of(models, key="sesame") as client:
        assert client.get("/readyz").status_code == 200  # without a key
        with monkeypatch.context() as patch:
            patch.setattr(models["clique"], "predict", fail)
            answer = client.get("/readyz")
            go_on.set()
        assert answer.status_code == 503 and "clique" in answer.text and "flat" not in answer.text
        assert "secret" not in answer.text and client.get("/healthz").status_code == 200
        assert client.get("/readyz").status_code == 200


def test_a_trace_is_logged_and_returned(client):
    header = {"traceparent": f"00-{TRACE}-{PARENT}-01"}
    spans = set()
    answers = (
        client.post("/predict", json={"texts": "an apple"}, headers=header),
        client.post("/predict", json={"texts": 3}, headers=header),  # a refusal has it too
        client.get("/nothing", headers=header),
    )
    for answer, line in zip(answers, client.lines, strict=True):
        version, trace, span, flags = answer.headers["traceresponse"].split("-")
        assert (version, trace, flags) == ("00", TRACE, "01")
        assert (line["trace_id"], line["span_id"], line["parent_id"]) == (TRACE, span, PARENT)
        spans.add(span)
    assert len(spans) == 3 and PARENT not in spans


MALFORMED = {
    "empty": "",
    "text": "a secret",
    "upper case": f"00-{TRACE.upper()}-{PARENT}-01",
    "no trace": f"00-{'0' * 32}-{PARENT}-01",
    "no parent": f"00-{TRACE}-{'0' * 16}-01",
    "version ff": f"ff-{TRACE}-{PARENT}-01",
    "too short": f"00-{TRACE[1:]}-{PARENT}-01",
    "more than version 00 has": f"00-{TRACE}-{PARENT}-01-more",
    "a line of a log": f'00-{TRACE}-{PARENT}-01","status":200',
    "long": f"01-{TRACE}-{PARENT}-01-{'a' * 1000}",
    "a newline of its own": f"00-{TRACE}-{PARENT}-0\\n",
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_traces_are_ignored(client, name):
    answer = client.post("/predict", json={"texts": "an apple"}, headers={"traceparent": MALFORMED[name]})
    assert answer.status_code == 200 and "traceresponse" not in answer.headers
    assert not {"trace_id", "span_id"} & set(client.lines[-1]) and "secret" not in str(client.lines)


def test_later_versions_and_two_headers():
    later = f"01-{TRACE}-{PARENT}-01-what-will-come".encode()
    assert read_trace([(b"traceparent", later)]).trace_id == TRACE
    assert read_trace([(b"traceparent", later), (b"traceparent", later)]) is None and read_trace([]) is None


def test_pages_of_other_origins_may_trace(models):
    asked = {"origin": "http://elsewhere", "access-control-request-method": "POST"}
    asked["access-control-request-headers"] = "content-type,traceparent"
    with client_of(models, origins=["http://elsewhere"]) as client:
        assert client.options("/predict", headers=asked).status_code == 200
        answer = client.get("/healthz", headers={"origin": "http://elsewhere"})
        assert answer.headers["access-control-expose-headers"] == "traceresponse"
