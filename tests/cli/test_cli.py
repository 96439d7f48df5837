import csv
import io
import json
import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from mpad.cli.main import app

runner = CliRunner()


def mpad(*arguments, stdin=None, check=True):
    """Run the real command in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", "from mpad.cli.main import main; main()", *map(str, arguments)],
        input=stdin,
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "200", "PYTHONWARNINGS": "error"},
        timeout=120,
    )
    if check:
        assert done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def data(tmp_path_factory, fruit_corpus):
    path = tmp_path_factory.mktemp("data") / "fruit.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["what", "kind"])
        writer.writerows(zip(*fruit_corpus, strict=True))
    return path


@pytest.fixture(scope="module")
def model(data):
    folder = data.parent / "model"
    arguments = "--hidden 16 --max-epochs 25 --learning-rate 0.01 --batch-size 32 --patience 100".split()
    done = mpad("fit", data, "--text", "what", "--label", "kind", "--out", folder, *arguments)
    assert "120 documents, 2 classes; kept epoch" in done.stderr and f"saved to {folder}" in done.stderr
    assert done.stdout == "" and "epoch  25/25" in done.stderr
    return folder


def test_predict_from_a_file_and_in_every_format(model, data):
    rows = list(csv.DictReader(io.StringIO(mpad("predict", model, data, "--text", "what", "-f", "csv").stdout)))
    assert len(rows) == 120 and set(rows[0]) == {"label", "probability", "text"}
    lines = mpad("predict", model, data, "--text", "what", "-f", "jsonl", "--proba").stdout.splitlines()
    records = [json.loads(line) for line in lines]
    assert [record["label"] for record in records] == [row["label"] for row in rows]
    assert records[0]["p(fruit)"] + records[0]["p(tool)"] == pytest.approx(1)
    assert "label" in mpad("predict", model, data, "--text", "what").stdout


def test_predict_from_standard_input_a_document_a_line(model):
    done = mpad("predict", model, "--format", "jsonl", stdin="a ripe plum\n\nthe drill")
    assert [json.loads(line)["text"] for line in done.stdout.splitlines()] == ["a ripe plum", "", "the drill"]
    assert mpad("predict", model, "-", "-f", "jsonl", stdin="").stdout == ""


def test_bad_bytes_on_standard_input_name_the_line(model):
    command = [sys.executable, "-c", "from mpad.cli.main import main; main()", "predict", str(model)]
    done = subprocess.run(command, input=b"fine\ncaf\xe9\n", capture_output=True, timeout=120)
    assert done.returncode == 1 and b"standard input, line 2: byte 0xe9 is not UTF-8" in done.stderr


def test_evaluate(model, data):
    done = mpad("evaluate", model, data, "--text", "what", "--label", "kind")
    for part in ("accuracy", "±", "macro-F1", "confusion matrix", "precision", "fruit", "tool"):
        assert part in done.stdout
    lines = mpad("evaluate", model, data, "--text", "what", "--label", "kind", "-f", "jsonl").stdout.splitlines()
    assert [json.loads(line)["class"] for line in lines] == ["fruit", "tool", "(all)"]
    assert 0.9 < json.loads(lines[-1])["accuracy"] <= 1 and json.loads(lines[0])["accuracy"] is None


def test_explain_in_every_view(model, tmp_path):
    assert "plum" in mpad("explain", model, "a ripe plum").stdout
    record = json.loads(mpad("explain", model, "-", "--format", "json", "--label", "tool", stdin="a plum").stdout)
    assert record["label"] == "tool" and record["predicted"] == "fruit"
    done = mpad("explain", model, "a ripe plum", "--out", tmp_path / "why.html")
    mpad("explain", model, "a ripe plum", "--format", "json", "--out", tmp_path / "why.html.json")
    assert json.loads((tmp_path / "why.html.json").read_text())["label"] == "fruit"
    mpad("explain", model, "a ripe plum", "--out", tmp_path / "why.txt")
    assert "plum" in (tmp_path / "why.txt").read_text()
    assert "written to" in done.stderr and (tmp_path / "why.html").read_text().startswith("<!doctype html>")


def test_info(model):
    facts = json.loads(mpad("info", model, "--json").stdout)
    assert facts["classes"] == ["fruit", "tool"] and facts["hidden"] == 16
    assert "fruit, tool" in mpad("info", model).stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["predict", "NOWHERE"], "no such folder"),
        (["predict", "MODEL", "nothing.csv"], "nothing.csv: no such file"),
        (["predict", "MODEL", "DATA"], "no column of text among what, kind; name it with --text"),
        (["evaluate", "MODEL", "DATA", "--text", "kind", "--label", "what"], "is not among the model's classes"),
        (["explain", "MODEL", "a", "--method", "magic"], "no method 'magic'"),
        (["fit", "DATA", "--text", "what", "--label", "kind", "--out", "x", "--variant", "star"], "no variant 'star'"),
        (["fit", "DATA", "--text", "what", "--label", "kind", "--out", "x", "--vectors", "no.bin"], "no such file"),
        (["info", "."], "config.json: no such file"),
        (["fit", "DATA", "--text", "what", "--label", "kind", "--out", "FULL"], "is there already and is not a model"),
        (["fit", "DATA", "--text", "what", "--label", "what", "--out", "x"], "cannot be both text and label"),
        (["fit", "DATA", "--text", "what", "--label", "kind", "--out", "x", "--seed", "-1"], "random_state"),
    ],
)
def test_errors_are_one_line_and_exit_code_1(model, data, tmp_path, arguments, said):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("dear")
    named = {"MODEL": model, "DATA": data, "NOWHERE": tmp_path / "nowhere", ".": tmp_path, "FULL": tmp_path / "full"}
    done = mpad(*[named.get(argument, argument) for argument in arguments], stdin="", check=False)
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith("mpad: ") and said in done.stderr and done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr


def test_a_bad_data_file_names_the_line(model, tmp_path):
    (tmp_path / "bad.csv").write_bytes(b"text\nok\n\xff\n")
    done = mpad("predict", model, tmp_path / "bad.csv", check=False)
    assert done.returncode == 1 and "bad.csv, line 3: byte 0xff is not UTF-8" in done.stderr


def test_wrong_usage_is_exit_code_2():
    assert runner.invoke(app, ["fit"]).exit_code == 2


@pytest.mark.parametrize("command", ["fit", "predict", "evaluate", "explain", "info", "demo"])
def test_help_explains_with_an_example(command):
    result = runner.invoke(app, [command, "--help"])
    assert result.exit_code == 0 and f"mpad {command}" in result.output and "Example" in result.output


def test_version():
    assert runner.invoke(app, ["--version"]).output.startswith("mpad 0.")


def test_a_closed_pipe_is_no_error(model):
    run = f"{sys.executable} -c 'from mpad.cli.main import main; main()' predict {model} -f jsonl"
    command = f'yes "some words" | head -n 20000 | {run} | head -n 1'
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, timeout=120)
    assert "Traceback" not in done.stderr and done.stdout.count("\n") == 1


def test_demo_from_start_to_end(tmp_path):
    done = mpad("demo", "--out", tmp_path / "demo", "--max-epochs", "2")
    for part in (
        "documents to learn from",
        "TF-IDF + linear SVM   accuracy",
        "TF-IDF + linear SVM",
        "probability",
        "Next:",
    ):
        assert part in done.stdout
    assert (tmp_path / "demo" / "model.safetensors").exists()


@pytest.mark.parametrize("name", ["dan", "tfidf-svm"])
def test_rivals_from_the_command_line(data, tmp_path, name):
    columns = ["--text", "what", "--label", "kind"]
    done = mpad("fit", data, *columns, "--model", name, "--out", tmp_path / "rival", "--max-epochs", "2")
    assert "120 documents, 2 classes" in done.stderr and "explain" not in done.stderr
    rows = list(
        csv.DictReader(io.StringIO(mpad("predict", tmp_path / "rival", data, "--text", "what", "-f", "csv").stdout))
    )
    assert len(rows) == 120 and ("probability" in rows[0]) == (name == "dan")
    assert "accuracy" in mpad("evaluate", tmp_path / "rival", data, *columns).stdout
    assert json.loads(mpad("info", tmp_path / "rival", "--json").stdout)["model"] == name
    told = mpad("fit", data, *columns, "--model", "cnnn", "--out", tmp_path / "none", check=False)
    assert told.returncode == 1 and "no model 'cnnn'" in told.stderr


def test_what_cannot_be_explained_is_told(data, tmp_path):
    mpad(
        "fit",
        data,
        "--text",
        "what",
        "--label",
        "kind",
        "--model",
        "dan",
        "--out",
        tmp_path / "dan",
        "--max-epochs",
        "1",
    )
    told = mpad("explain", tmp_path / "dan", "an apple", check=False)
    assert told.returncode == 1 and "by attention alone so far" in told.stderr
    told = mpad("explain", tmp_path / "dan", "an apple", "--method", "attention", check=False)
    assert told.returncode == 1 and "a 'dan' has no attention to show" in told.stderr


def test_compare(data, tmp_path):
    pytest.importorskip("matplotlib")
    arguments = ["--text", "what", "--label", "kind", "--folds", "2", "--max-epochs", "2"]
    done = mpad("compare", data, "--models", "tfidf-svm,dan", *arguments, "-f", "jsonl", "--plot", tmp_path / "a.png")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["model"] for row in rows] == ["tfidf-svm", "dan"] and rows[0]["p"] is None and rows[1]["p"] >= 0
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG") and "dan: fold 2 of 2" in done.stderr
    assert "macro-F1" in mpad("compare", data, "--models", "tfidf-svm", *arguments).stdout
    told = mpad("compare", data, "--models", "tfidf-svm,nothing", *arguments, check=False)
    assert told.returncode == 1 and "no model 'nothing'" in told.stderr
