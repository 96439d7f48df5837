"""Labeling: the choice of documents, the journal, the session, the page in a browser."""

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request

import numpy as np
import pytest
from starlette.testclient import TestClient

from mpad import MPADClassifier
from mpad.errors import DataFileError, InputError
from mpad.labeling import LabelingSession, Point, choose_next
from mpad.labeling.journal import Journal
from mpad.labeling.session import is_flat
from mpad.server.labeling import make_label_app

TOOLS, FRUIT = "hammer wrench chisel pliers drill".split(), "apple banana cherry melon grape".split()
FILLER = "the old one lay on a table near my door while we talked".split()


def documents(n=60):
    generator = np.random.default_rng(1)
    kinds = [("fruit", "tool")[k % 2] for k in range(n)]
    own = {"fruit": FRUIT, "tool": TOOLS}
    texts = [
        " ".join([*generator.choice(own[kind], 3), *generator.choice(FILLER, 5), str(k)])
        for k, kind in enumerate(kinds)
    ]
    return texts, kinds


# ── The choice ──


def test_the_first_documents_are_typical_and_differ_from_each_other():
    generator = np.random.default_rng(0)
    vectors = np.repeat(np.eye(4, dtype=np.float32), [9, 7, 5, 3], axis=0) + generator.normal(0, 0.02, (24, 4))
    kinds = np.repeat(np.arange(4), [9, 7, 5, 3])
    chosen = choose_next(vectors.astype(np.float32), np.zeros(0, np.int64), np.arange(24), 4)
    assert kinds[chosen].tolist() == [0, 1, 2, 3], "one of each group, the largest group first"
    more = choose_next(vectors.astype(np.float32), np.array(chosen[:1]), np.setdiff1d(np.arange(24), chosen[:1]), 3)
    assert 0 not in kinds[more], "the group that has a label already comes last"


def test_uncertain_documents_come_first_unless_they_are_alike():
    vectors = np.repeat(np.eye(3, dtype=np.float32), 20, axis=0)
    p = np.full((60, 2), [0.99, 0.01])
    p[[0, 1, 2, 25, 26]] = [0.5, 0.5]  # of two kinds, which are alike among themselves
    free = np.arange(60)
    chosen = choose_next(vectors, np.zeros(0, np.int64), free, 2, p)
    assert [row // 20 for row in chosen] == [0, 1] and p[chosen].max() == 0.5
    assert choose_next(vectors, free, free[:0], 3, p) == []
    assert choose_next(vectors, free[3:], free[:3], 3, p) == [0, 1, 2]


def test_a_curve_is_flat_when_fifty_labels_bring_less_than_a_point():
    def curve(*accuracies):
        return [Point(10 * k, accuracy, 0.0) for k, accuracy in enumerate(accuracies, 1)]

    assert not is_flat([]) and not is_flat(curve(0.5, 0.6, 0.7))
    assert not is_flat(curve(0.5, 0.6, 0.7, 0.8, 0.85, 0.9))
    assert is_flat(curve(0.5, 0.9, 0.9, 0.9, 0.9, 0.9, 0.905))


# ── The journal ──


def test_labels_survive(tmp_path):
    journal = Journal(tmp_path / "labels.csv")
    journal.set("one", "a", "7")
    journal.set("two", "b")
    journal.set("one", "c")
    journal.set("two", None)
    journal.close()
    with Journal(tmp_path / "labels.csv") as again:
        assert again.labels == {"one": "c"}
    with (tmp_path / "labels.csv").open(newline="") as file:
        assert list(csv.DictReader(file)) == [{"id": "7", "text": "one", "label": "c"}]
    assert len((tmp_path / "labels.csv.log").read_text().splitlines()) == 4, "nothing is taken out of the journal"


def test_edits_of_the_table_are_labels_too(tmp_path):
    table = tmp_path / "labels.csv"
    journal = Journal(table)
    for text in ("one", "two", "three"):
        journal.set(text, "a")
    table.write_text("text,label\none,b\nthree,a\nfour,c\n")  # one changed, two deleted, four added
    journal.set("five", "a")
    assert journal.labels == {"one": "b", "three": "a", "four": "c", "five": "a"}
    journal.close()
    table.write_text("text,label\none,a\n")
    with Journal(table) as again:
        assert again.labels == {"one": "a"}


def test_a_table_of_somebody_else_is_continued_or_left_alone(tmp_path):
    table = tmp_path / "labels.csv"
    table.write_text("text,label\nold,a\n")
    with Journal(table) as journal:
        assert journal.labels == {"old": "a"}
    (tmp_path / "other.csv").write_text("name,size\nx,1\n")
    with pytest.raises(DataFileError, match="columns text and label"):
        Journal(tmp_path / "other.csv")


def test_a_torn_line_is_no_label_and_others_are_refused(tmp_path):
    journal = Journal(tmp_path / "labels.csv")
    journal.set("one", "a")
    journal.close()
    log = tmp_path / "labels.csv.log"
    log.write_bytes(log.read_bytes() + b'{"text": "two", "la')
    journal = Journal(tmp_path / "labels.csv")
    assert journal.labels == {"one": "a"}
    journal.close()
    log.write_text('{"text": 3}\n{"text": "x", "label": "a"}\n')
    with pytest.raises(DataFileError, match="line 1"):
        Journal(tmp_path / "labels.csv")


def test_two_processes_cannot_label_into_one_file(tmp_path):
    first = Journal(tmp_path / "labels.csv")
    with pytest.raises(DataFileError, match="another process"):
        Journal(tmp_path / "labels.csv")
    first.close()
    Journal(tmp_path / "labels.csv").close()


# ── The session ──


@pytest.fixture
def session(tmp_path):
    texts, kinds = documents()
    session = LabelingSession(texts, Journal(tmp_path / "labels.csv"), ["fruit", "tool"])
    session.truth = dict(zip(texts, kinds, strict=True))
    yield session
    session.close()


def test_it_learns_from_a_batch_and_suggests(session):
    first = session.next_document()
    assert first.suggestion in ("fruit", "tool") and first.explanation is None, "by the names of the classes"
    for _ in range(20):
        document = session.next_document()
        session.label(document.row, session.truth[document.text])
    session.wait()
    document = session.next_document()
    assert document.row not in session.labels and document.explanation.words
    assert session.curve and session.curve[-1].labels >= 4
    right = sum(session.document(row).suggestion == session.truth[session.texts[row]] for row in range(60))
    assert right >= 50
    assert (
        session.state()["labeled"] == 20
        and session.state()["counts"]["fruit"] + session.state()["counts"]["tool"] == 20
    )


def test_undo_skip_and_new_classes(session):
    first = session.next_document()
    session.label(first.row, "vegetable")
    assert session.state()["classes"] == ["fruit", "tool", "vegetable"]
    assert session.undo() == first.row and session.labels == {} and session.undo() is None
    assert session.next_document().row == first.row
    session.skip(first.row)
    assert session.next_document().row != first.row
    with pytest.raises(InputError, match="no document 99"):
        session.label(99, "fruit")
    with pytest.raises(InputError, match="empty"):
        session.label(0, "  ")


def test_two_browsers_see_different_documents(session):
    assert session.next_document().row != session.next_document().row


def test_everything_labeled_ends_it(tmp_path):
    session = LabelingSession(["a b", "c d", "a b", " "], Journal(tmp_path / "labels.csv"))
    assert len(session.texts) == 2, "copies and empty texts are left out"
    for _ in range(2):
        session.label(session.next_document().row, "x")
    assert session.next_document() is None
    session.close()
    with Journal(tmp_path / "other.csv") as journal, pytest.raises(InputError, match="no documents"):
        LabelingSession(["", " "], journal)


def test_a_model_to_start_from_is_adjusted(fitted_flat, tmp_path):
    fitted_flat.save(tmp_path / "model")
    model = MPADClassifier.load(tmp_path / "model")
    texts = [f"{word} {k} on it" for k, word in enumerate(["apple", "hammer", "pear", "saw"] * 4)]
    session = LabelingSession(texts, Journal(tmp_path / "labels.csv"), model=model)
    assert session.classes == ["fruit", "tool"]
    document = session.next_document()
    assert document.suggestion in session.classes and document.explanation is not None
    for row in range(12):
        session.label(row, ("fruit", "tool")[row % 2])
    session.wait()
    assert session.problem == "" and session.model is not model
    session.close()


# ── Over HTTP ──


def test_the_api_stores_and_answers_with_the_next_document(session):
    with TestClient(make_label_app(session), base_url="http://localhost") as client:
        first = client.get("/next").json()
        row = first["document"]["row"]
        second = client.post("/label", json={"row": row, "label": "fruit"}).json()
        assert second["labeled"] == 1 and second["document"]["row"] != row and second["can_undo"]
        undone = client.post("/undo", json={}).json()
        assert undone["labeled"] == 0 and undone["document"]["row"] == row
        assert client.post("/skip", json={"row": row}).json()["document"]["row"] != row
        assert client.post("/label", json={"row": 999, "label": "x"}).status_code == 422
        assert client.post("/label", json={"row": 1}).status_code == 422
        assert client.post("/label", content=b"row=1").status_code == 415
        assert client.get("/nothing").status_code == 404
        page = client.get("/")
        assert page.headers["content-type"].startswith("text/html") and "script-src 'self'" in str(page.headers)


def start(tmp_path, *options):
    texts, kinds = documents()
    with (tmp_path / "data.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("id", "text"), *((f"d{k}", text) for k, text in enumerate(texts))])
    command = [sys.executable, "-m", "mpad", "label", "data.csv", "--port", "0", *options]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    lines = []
    while not lines or "labeling at" not in lines[-1]:
        line = process.stderr.readline()
        assert line, "".join(lines)
        lines.append(line)
    return process, lines[-1].rsplit(" ", 1)[1].strip(), dict(zip(texts, kinds, strict=True))


def ask(address, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address + path, data, {"content-type": "application/json"})
    return json.load(urllib.request.urlopen(request, timeout=600))


def test_a_killed_server_loses_no_label(tmp_path):
    process, address, truth = start(tmp_path, "--class", "fruit", "--class", "tool=a tool to work with")
    answer = ask(address, "/next")
    for _ in range(7):
        document = answer["document"]
        answer = ask(address, "/label", {"row": document["row"], "label": truth[document["text"]]})
    os.kill(process.pid, signal.SIGKILL)
    process.wait(60)
    process.stderr.close()
    with (tmp_path / "labels.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 7 and all(truth[row["text"]] == row["label"] and row["id"][0] == "d" for row in rows)
    process, address, _ = start(tmp_path)
    assert ask(address, "/state")["labeled"] == 7
    process.send_signal(signal.SIGINT)
    assert process.wait(600) in (0, 130)
    process.stderr.close()


# ── In a browser ──

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")


@pytest.fixture
def browser(request):
    webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium")
    if not (BROWSER and DRIVER):
        pytest.skip("needs chromium and chromedriver (apt-get install chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    width = getattr(request, "param", 1280)
    arguments = (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        f"--window-size={width},900",
    )
    for argument in arguments:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


def until(condition, seconds=120):
    end = time.monotonic() + seconds
    while not (result := condition()):
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.1)
    return result


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("browser", [1280, 400], indirect=True)
def test_the_page_by_keys_and_by_mouse(browser, tmp_path):
    process, address, truth = start(tmp_path, "--class", "fruit", "--class", "tool")
    try:
        browser.get(address)

        def text():
            return browser.find_element("id", "document").text

        def labeled():
            return browser.find_element("id", "progress").text.split()[0]

        until(lambda: text() in truth)
        body = browser.find_element("tag name", "body")
        for n in range(1, 12):  # by keys
            before = text()
            body.send_keys("1" if truth[before] == "fruit" else "2")
            until(lambda n=n: labeled() == str(n))
        until(lambda: browser.find_elements("css selector", "#curve circle"), 600)  # the first fit
        body.send_keys("u")
        until(lambda: labeled() == "10")
        until(lambda: text() == before)
        for button in browser.find_elements("css selector", "#classes button"):  # by mouse
            if button.text.startswith(truth[before]):
                button.click()
                break
        until(lambda: labeled() == "11")
        current = text()
        browser.find_element("id", "skip").click()
        until(lambda: text() != current)
        browser.find_element("id", "new-class").send_keys("neither\n")
        until(lambda: labeled() == "12")
        assert "neither" in browser.find_element("id", "counts").text
        assert browser.find_elements("css selector", "#document mark"), "the words behind the suggestion are colored"
        wide = browser.execute_script("return document.documentElement.scrollWidth > window.innerWidth")
        assert not wide, "nothing is wider than the window"
        assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []
        browser.refresh()
        until(lambda: labeled() == "12")
        browser.save_screenshot(str(tmp_path / "page.png"))
    finally:
        process.terminate()
        process.wait(600)
        process.stderr.close()
