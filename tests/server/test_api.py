"""What the API answers, and what it refuses."""

import asyncio
import json

import numpy as np
import pytest
from tests.server.conftest import client_of

from mpad import MPADClassifier
from mpad.errors import InputError
from mpad.paper import zoo
from mpad.scale.text_model import Predictions
from mpad.server.batching import Batcher
from mpad.server.errors import HTTPProblem
from mpad.server.models import load_all
from mpad.server.settings import Limits

TEXT = "He had the apple. It was not a saw!"
ENDPOINTS = {"/predict": {"texts": TEXT}, "/explain": {"text": TEXT}, "/what-if": {"text": TEXT}}

SCRIPTS = "app", "answer", "graph", "dom", "workspace", "table", "csv", "docs"


def test_one_document_or_many(client, fitted_flat):
    one = client.post("/predict", json={"texts": TEXT}).json()
    many = client.post("/predict", json={"texts": [TEXT, "", "a drill"]}).json()
    assert one["model"] == "flat" and one["predictions"][0]["label"] == many["predictions"][0]["label"]
    expected = fitted_flat.predict_proba([TEXT, "", "a drill"])
    found = [[p["probabilities"][label] for label in ("fruit", "tool")] for p in many["predictions"]]
    assert np.allclose(found, expected, atol=1e-5)
    assert [p["label"] for p in many["predictions"]] == fitted_flat.predict([TEXT, "", "a drill"]).tolist()
    assert client.post("/predict", json={"texts": []}).json()["predictions"] == []


def test_models_by_name_and_one_without_probabilities(client):
    for name in ("flat", "clique", "svm"):
        answer = client.post("/predict", json={"texts": ["an apple"], "model": name}).json()
        assert answer["model"] == name and (answer["predictions"][0]["probabilities"] is None) == (name == "svm")
    refused = client.post("/explain", json={"text": "an apple", "model": "svm"})
    assert refused.status_code == 422 and "no graph of words" in refused.json()["detail"]


@pytest.mark.parametrize("model", ["flat", "clique"])
@pytest.mark.parametrize("method", ["gradients", "occlusion", "attention", None])
def test_explanations_have_offsets_and_a_graph(client, model, method):
    answer = client.post("/explain", json={"text": TEXT, "model": model, "method": method}).json()
    assert [TEXT[w["start"] : w["end"]].lower() for w in answer["words"]] == [w["word"] for w in answer["words"]]
    assert answer["method"] == (method or "gradients") and len(answer["sentences"]) == 2
    for node in answer["nodes"]:
        assert {answer["words"][k]["word"] for k in node["occurrences"]} == {node["word"]}
        assert 0 <= node["x"] <= 1 and 0 <= node["y"] <= 1
    pairs = {(answer["nodes"][e["source"]]["word"], answer["nodes"][e["target"]]["word"]) for e in answer["edges"]}
    assert ("the", "apple") in pairs
    assert client.post("/explain", json={"text": TEXT, "label": "tool"}).json()["label"] == "tool"


@pytest.mark.parametrize("model", ["flat", "clique"])
def test_what_if_a_part_were_not_there(client, model):
    ask = {"text": "the apple was there", "model": model}
    whole = client.post("/predict", json={"texts": ask["text"], "model": model}).json()["predictions"][0]
    same = client.post("/what-if", json=ask).json()["predictions"][0]
    assert same["probabilities"] == pytest.approx(whole["probabilities"], abs=1e-5)
    without = client.post("/what-if", json={**ask, "words": [1]}).json()["predictions"][0]["probabilities"]
    text = client.post("/predict", json={"texts": "the was there", "model": model}).json()["predictions"][0]
    assert without == pytest.approx(text["probabilities"], abs=1e-5)
    edge = {**ask, "edges": [{"source": "the", "target": "apple"}]}
    assert client.post("/what-if", json=edge).json()["predictions"][0]["probabilities"] != same["probabilities"]
    nothing = {**ask, "edges": [{"source": "apple", "target": "the"}]}  # no such edge: nothing changes
    assert client.post("/what-if", json=nothing).json()["predictions"][0]["probabilities"] == same["probabilities"]
    outside = client.post("/what-if", json={**ask, "words": [4]})
    assert outside.status_code == 422 and "has 4 words" in outside.json()["detail"]


def test_info_and_health_say_nothing_of_the_machine(client, folders):
    assert client.get("/healthz").json() == {"status": "ok"}
    info = client.get("/info")
    assert [model["name"] for model in info.json()["models"]] == ["flat", "clique", "svm"]
    assert all(folder not in info.text for folder in folders) and not info.json()["needs_key"]


BAD = {
    "not JSON": (b"{", 400, "not valid JSON"),
    "empty": (b"", 400, "not valid JSON"),
    "not UTF-8": (b'{"texts": "\xff\xfe", "text": "\xff"}', 400, "not valid JSON"),
    "a raw NUL": (b'{"texts": "a\x00b", "text": "a\x00b"}', 400, "not valid JSON"),
    "an escaped NUL": (b'{"texts": "a\\u0000b", "text": "a\\u0000b"}', 422, "NUL"),
    "half a character": (b'{"texts": "\\ud800", "text": "\\ud800"}', 400, "not valid JSON"),
    "a number": (b'{"texts": 3, "text": 3}', 422, "valid"),
    "nothing in it": (b"{}", 422, "field required"),
    "a list": (b"[]", 422, "object"),
    "null": (b"null", 422, "object"),
    "deep": (b'{"texts": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", 400, "not valid JSON"),
    "one word of 10 MB": (b'{"texts": "' + b"a" * 10_000_000 + b'"}', 413, "larger than"),
}


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.parametrize("name", BAD)
def test_bad_bodies_get_a_sentence(client, endpoint, name):
    body, status, said = BAD[name]
    if endpoint != "/predict":
        body = body.replace(b'"texts": [', b'"text": [').replace(b'"texts": "aaa', b'"text": "aaa')
        if name in ("not UTF-8", "a raw NUL", "an escaped NUL", "half a character", "a number"):
            body = b'{"text"' + body.partition(b'"text"')[2]
    elif b', "text"' in body:
        body = body.partition(b', "text"')[0] + b"}"
    answer = client.post(endpoint, content=body, headers={"content-type": "application/json"})
    assert answer.status_code == status and said in answer.json()["detail"], answer.text


def test_other_refusals(client):
    unknown = client.post("/predict", json={"texts": TEXT, "model": "nobody"})
    assert unknown.status_code == 404 and "flat, clique, svm" in unknown.json()["detail"]
    extra = client.post("/predict", json={"texts": TEXT, "txet": 1})
    assert extra.status_code == 422 and extra.json()["detail"].startswith("txet:")
    half = client.post("/what-if", json={"text": TEXT, "edges": [{"source": "a"}]})
    assert half.status_code == 422 and half.json()["detail"].startswith("edges.0.target:")
    assert client.head("/healthz").status_code == 200
    assert "nothing at this path" in client.get("/secret").json()["detail"] and client.lines[-1]["path"] == "(unknown)"
    assert len(client.post("/explain", json={"text": TEXT, "label": "x" * 10_000}).text) < 1_000
    form = client.post("/predict", content=b"texts=a", headers={"content-type": "application/x-www-form-urlencoded"})
    assert form.status_code == 415 and "application/json" in form.json()["detail"]
    assert client.post("/explain", json={"text": TEXT, "label": "no"}).status_code == 422
    assert client.post("/explain", json={"text": TEXT, "method": "no"}).status_code == 422
    assert client.get("/predict").status_code == 405 and client.get("/etc/passwd").status_code == 404


def test_limits(models):
    with client_of(models, limits=Limits(documents=2, characters=10, explained=5)) as client:
        many = client.post("/predict", json={"texts": ["a"] * 3})
        assert many.status_code == 413 and "at most 2" in many.json()["detail"]
        long = client.post("/predict", json={"texts": ["a", "a" * 11]})
        assert long.status_code == 413 and "document 1 has 11 characters" in long.json()["detail"]
        assert client.post("/explain", json={"text": "a" * 6}).status_code == 413
    with pytest.raises(InputError, match="limit of body"):
        Limits(body=0)


def test_a_body_without_a_length_is_cut_off_too(models):
    def endless():
        yield b'{"texts": "'
        for _ in range(100):
            yield b"a" * 1000

    with client_of(models, limits=Limits(body=5000)) as client:
        answer = client.post("/predict", content=endless(), headers={"content-type": "application/json"})
        assert answer.status_code == 413 and "5,000 bytes" in answer.json()["detail"]


def test_a_key_is_asked_for(models):
    with client_of(models, key="open sesame") as client:
        for path, body in ENDPOINTS.items():
            for headers in ({}, {"x-api-key": "open"}, {"authorization": "Bearer wrong"}):
                answer = client.post(path, json=body, headers=headers)
                assert answer.status_code == 401 and "X-API-Key" in answer.json()["detail"]
            assert client.post(path, json=body, headers={"x-api-key": "open sesame"}).status_code == 200
        assert client.get("/info", headers={"authorization": "Bearer open sesame"}).json()["needs_key"]
        assert client.get("/info").status_code == 401
        assert client.get("/healthz").status_code == client.get("/").status_code == 200


def test_other_origins_only_where_named(models):
    asked = {"origin": "http://elsewhere", "access-control-request-method": "POST"}
    with client_of(models) as client:
        assert "access-control-allow-origin" not in client.options("/predict", headers=asked).headers
    with client_of(models, origins=["http://elsewhere"]) as client:
        assert client.options("/predict", headers=asked).headers["access-control-allow-origin"] == "http://elsewhere"


def test_a_browser_may_ask_leave_without_a_key(models):
    asked = {"origin": "http://elsewhere", "access-control-request-method": "POST"}
    asked["access-control-request-headers"] = "content-type,x-api-key"
    with client_of(models, key="sesame", origins=["http://elsewhere"]) as client:
        assert client.options("/predict", headers=asked).status_code == 200
        refused = client.post("/predict", json={"texts": "a"}, headers={"origin": "http://elsewhere"})
        assert refused.status_code == 401 and refused.headers["access-control-allow-origin"] == "http://elsewhere"


def test_a_click_does_not_wait_for_a_long_explanation(models, monkeypatch):
    import threading

    begun, go_on = threading.Event(), threading.Event()
    real = models["flat"].explain

    def slow(*arguments):
        begun.set()
        assert go_on.wait(300)
        return real(*arguments)

    monkeypatch.setattr(models["flat"], "explain", slow)
    with client_of(models) as client:
        waiting = threading.Thread(target=client.post, args=("/explain",), kwargs={"json": {"text": TEXT}})
        waiting.start()
        assert begun.wait(300)
        assert client.post("/what-if", json={"text": TEXT}).status_code == 200
        go_on.set()
        waiting.join(1200)


def test_too_many_explanations_are_told_to_come_back(models, monkeypatch):
    monkeypatch.setattr("mpad.server.app._MAX_PENDING", 0)
    with client_of(models) as client:
        answer = client.post("/explain", json={"text": TEXT})
        assert answer.status_code == 503 and answer.headers["retry-after"] == "1"


def test_the_log_has_no_document(client):
    client.post("/predict", json={"texts": ["a secret apple"] * 3})
    client.post("/predict", content=b"a secret", headers={"content-type": "application/json"})
    first, second = client.lines
    assert first["status"] == 200 and first["documents"] == 3 and first["model"] == "flat" and first["ms"] > 0
    assert second["status"] == 400 and "secret" not in json.dumps(client.lines)


def test_the_page_is_our_own_and_closed(client):
    page = client.get("/")
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    for path in ("/", "/style.css", "/docs", *[f"/{name}.js" for name in SCRIPTS]):
        answer = client.get(path)
        assert answer.status_code == 200 and "http://" not in answer.text.replace("http://www.w3.org/2000/svg", "")
        assert "https://" not in answer.text and answer.headers["x-content-type-options"] == "nosniff"
    assert "/predict" in client.get("/docs").text


class Slow:
    name = "slow"

    def __init__(self):
        self.sizes = []

    def predict(self, texts):
        import time

        time.sleep(0.05)
        if "fail" in texts:
            raise ValueError("no")
        self.sizes.append(len(texts))
        return Predictions(list(texts), np.ones((len(texts), 1)))


def test_requests_that_arrive_together_are_answered_together():
    async def together():
        model = Slow()
        batcher = Batcher(model, 100)
        found = await asyncio.gather(*[batcher.predict([str(k), "x"]) for k in range(20)])
        await batcher.close()
        return model, batcher, found

    model, batcher, found = asyncio.run(together())
    assert [scores.labels for scores in found] == [[str(k), "x"] for k in range(20)]
    assert sum(model.sizes) == 40 and batcher.passes <= 3


def test_one_failing_pass_does_not_end_the_others():
    async def some():
        batcher = Batcher(Slow(), 3)
        failing = asyncio.create_task(batcher.predict(["fail"]))
        await asyncio.sleep(0.01)
        with pytest.raises(HTTPProblem, match="waiting already"):
            await batcher.predict(["a"] * 4)
        with pytest.raises(ValueError, match="no"):
            await failing
        answer = await batcher.predict(["fine"])
        await batcher.close()
        return answer

    assert asyncio.run(some()).labels == ["fine"]


def test_two_models_of_one_name(folders):
    with pytest.raises(InputError, match="two models are named 'flat'"):
        load_all([folders[0], f"flat={folders[1]}"])


def test_an_explanation_without_some_words_is_of_what_is_left(client, fitted_flat):
    text = "the apple was not a saw"
    whole = client.post("/explain", json={"text": text, "label": "fruit"}).json()
    left = client.post("/explain", json={"text": text, "label": "fruit", "without": [3]}).json()
    assert [word["word"] for word in left["words"]] == "the apple was a saw".split()
    assert [word["start"] for word in left["words"]] == [0, 4, 10, 18, 20], "places stay those of the text"
    assert left["probabilities"]["fruit"] == pytest.approx(
        fitted_flat.predict_proba(["the apple was a saw"])[0, 0], abs=1e-6
    )
    edges = {(left["nodes"][e["source"]]["word"], left["nodes"][e["target"]]["word"]) for e in left["edges"]}
    assert ("was", "a") in edges and len(whole["edges"]) == len(edges) + 1
    wrong = client.post("/explain", json={"text": text, "without": [9]})
    assert wrong.status_code == 422 and "there is no word 9" in wrong.json()["detail"]


def test_info_has_a_card_and_examples(folders):
    shown = load_all(folders[:1], examples=[("fruit", "a plum")])["flat"].info()
    assert shown["examples"] == [{"label": "fruit", "text": "a plum"}] and shown["megabytes"] > 0
    assert shown["card"]["documents"] and "examples" not in shown["card"] and shown["probabilities"]
    assert load_all(folders[2:])["svm"].info()["probabilities"] is False


def test_many_labels_are_served(tmp_path, fruit_corpus):
    texts, labels = fruit_corpus
    tags = [[label, *(["long"] if len(text.split()) > 8 else [])] for text, label in zip(texts, labels, strict=True)]
    options = {"hidden": 8, "vector_size": 8, "max_epochs": 10, "learning_rate": 0.02, "device": "cpu"}
    model = MPADClassifier(random_state=0, batch_size=16, **options).fit(texts, tags)
    assert model.classes_.tolist() == ["fruit", "long", "tool"] and model.score(texts, tags) > 0.3
    model.save(tmp_path / "many")
    with client_of(load_all([str(tmp_path / "many")])) as client:
        (answer,) = client.post("/predict", json={"texts": [texts[0]]}).json()["predictions"]
        chosen = model.predict([texts[0]])[0]
        assert answer["label"] == ", ".join(model.classes_[chosen == 1]) and set(answer["probabilities"]) == {
            "fruit",
            "long",
            "tool",
        }
        assert client.get("/info").json()["models"][0]["many"]
        why = client.post("/explain", json={"text": texts[0], "label": "long"}).json()
        assert why["label"] == "long" and why["predicted"] == answer["label"]
        assert why["labels"] == answer["labels"] == model.classes_[chosen == 1].tolist()
        without = client.post("/what-if", json={"text": texts[0], "words": [0]})
        assert without.status_code == 200 and isinstance(without.json()["predictions"][0]["labels"], list)


def test_many_labels_of_a_baseline_without_probabilities_are_served(tmp_path, fruit_corpus):
    texts, labels = fruit_corpus
    zoo.make("tfidf-svm").fit(texts, [[label, "a, b"] for label in labels]).save(tmp_path / "svm")
    with client_of(load_all([str(tmp_path / "svm")])) as client:
        (answer,) = client.post("/predict", json={"texts": ["the saw and a drill"]}).json()["predictions"]
        assert answer["labels"] == ["a, b", "tool"] and answer["probabilities"] is None
        assert client.get("/info").json()["models"][0]["many"]
        assert 'mpad_labels_total{label="tool",model="svm"} 1.0' in client.get("/metrics").text
