import csv
import io
import json
import os
import subprocess
import sys

import numpy as np
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
        timeout=1200,
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
    assert (
        "120 documents, 2 classes: fruit 60 (50.0 %), tool 60 (50.0 %)" in done.stderr
        and f"saved to {folder}" in done.stderr
    )
    assert done.stdout == "" and "epoch  25/25" in done.stderr
    return folder


def test_predict_from_a_file_and_in_every_format(model, data):
    rows = list(csv.DictReader(io.StringIO(mpad("predict", model, data, "--text", "what", "-f", "csv").stdout)))
    assert len(rows) == 120 and list(rows[0]) == ["what", "kind", "label", "probability"]
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
    done = subprocess.run(command, input=b"fine\ncaf\xe9\n", capture_output=True, timeout=1200)
    assert done.returncode == 1 and b"standard input, line 2: byte 0xe9 is not UTF-8" in done.stderr


def test_evaluate(model, data):
    done = mpad("evaluate", model, data, "--text", "what", "--label", "kind")
    for part in ("accuracy", "95 % interval", "macro-F1", "confusion matrix", "precision", "fruit", "tool"):
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


def test_letters_that_a_picture_cannot_show_are_one_line(model, tmp_path):
    pytest.importorskip("matplotlib", reason="needs mpad[plots]")
    done = mpad("explain", model, "a plum 这个手机", "--out", tmp_path / "why.png")
    assert done.stderr.count("\n") == 2 and "drawn as boxes" in done.stderr and "Glyph" not in done.stderr


def test_info(model):
    facts = json.loads(mpad("info", model, "--json").stdout)
    assert facts["classes"] == ["fruit", "tool"] and facts["hidden"] == 16
    assert "fruit, tool" in mpad("info", model).stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["predict", "NOWHERE"], "no such folder"),
        (["predict", "MODEL", "nothing.csv"], "nothing.csv: no such file"),
        (["predict", "MODEL", "OTHER"], "no column of text among one, two; name it with --text"),
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
    (tmp_path / "other.csv").write_text("one,two\na,b\n")
    named = {
        "OTHER": tmp_path / "other.csv",
        "MODEL": model,
        "DATA": data,
        "NOWHERE": tmp_path / "nowhere",
        ".": tmp_path,
        "FULL": tmp_path / "full",
    }
    done = mpad(*[named.get(argument, argument) for argument in arguments], stdin="", check=False)
    assert done.returncode == 1 and done.stdout == ""
    lines = [line for line in done.stderr.splitlines() if ": text from " not in line]  # which columns were read
    assert len(lines) == 1 and lines[0].startswith("mpad: ") and said in lines[0]
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
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, timeout=1200)
    assert "Traceback" not in done.stderr and done.stdout.count("\n") == 1


def test_demo_from_start_to_end(tmp_path):
    done = mpad("demo", "--out", tmp_path / "demo", "--max-epochs", "2")
    for part in (
        "documents to train on",
        "95 % interval",
        "TF-IDF + linear SVM",
        "without words",
        "mpad serve",
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
    assert told.returncode == 1 and "by attention only" in told.stderr
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


def test_large_files_are_evaluated_as_they_are_read(model, data, monkeypatch):
    arguments = ["evaluate", str(model), str(data), "--text", "what", "--label", "kind"]
    whole = runner.invoke(app, arguments).stdout
    monkeypatch.setattr("mpad.cli.inputs.LARGE", 0)
    monkeypatch.setattr("mpad.data.streams.CHUNK", 50)
    monkeypatch.setattr("mpad.cli.inputs.Reader.labeled", None)
    assert runner.invoke(app, arguments).stdout == whole and "accuracy" in whole


def test_evaluate_counts_unknown_labels_as_mistakes(model, tmp_path):
    (tmp_path / "d.csv").write_text("text,label\na ripe plum,fruit\nthe drill,gadget\n")
    done = mpad("evaluate", model, tmp_path / "d.csv")
    assert "all counted as mistakes: 'gadget' (1)" in done.stderr and "accuracy  0.5000" in done.stdout
    assert "gadget" in done.stdout


def test_predict_gives_the_likeliest_classes(model):
    done = mpad("predict", model, "--top", "2", "-f", "jsonl", stdin="a ripe plum\n")
    record = json.loads(done.stdout)
    assert record["class 1"] == "fruit" and record["class 2"] == "tool" and record["text"] == "a ripe plum"
    assert record["probability 1"] + record["probability 2"] == pytest.approx(1)


def test_predict_answers_while_lines_come(model):
    command = [sys.executable, "-u", "-c", "from mpad.cli.main import main; main()", "predict", str(model)]
    with subprocess.Popen(
        [*command, "-f", "jsonl"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as process:
        for text, label in (("a ripe plum", "fruit"), ("the drill", "tool")):
            process.stdin.write(f"{text}\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["label"] == label  # before standard input ends
        process.stdin.close()
        assert process.wait(1200) == 0


def rows_of(file):
    return list(csv.reader(io.StringIO(file.read_text())))[1:]


@pytest.fixture(scope="module")
def tagged(data):
    """Documents of many labels, as a column with a separator."""
    rows = rows_of(data)
    path = data.parent / "tagged.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "tags"])
        for text, kind in rows:
            long = ["long"] if len(text.split()) > 8 else []
            writer.writerow([f"{text} {' '.join(long)}", ";".join([kind, *long])])
    return path


def test_many_labels_from_file_to_file(tagged, tmp_path):
    options = "--hidden 16 --max-epochs 20 --learning-rate 0.01 --batch-size 16 --separator ;".split()
    done = mpad("fit", tagged, "--out", tmp_path / "m", *options)
    assert "120 documents, 3 classes" in done.stderr
    lines = mpad("predict", tmp_path / "m", tagged, "-f", "jsonl", "--proba").stdout.splitlines()
    records = [json.loads(line) for line in lines]
    given = [sorted(record["label"]) for record in records]
    assert sum(own == sorted(record["tags"].split(";")) for own, record in zip(given, records, strict=True)) > 100
    assert {"p(fruit)", "p(tool)", "p(long)"} <= set(records[0])
    few = mpad("predict", tmp_path / "m", tagged, "-f", "jsonl", "--threshold", "0.999999").stdout.splitlines()
    assert not any(json.loads(line)["label"] for line in few)
    drawn = tmp_path / "labels.png"
    shown = mpad("evaluate", tmp_path / "m", tagged, "--separator", ";", "--plot", drawn).stdout
    assert drawn.read_bytes().startswith(b"\x89PNG")
    assert float(shown.split()[1]) > 0.9 and "macro-F1" in shown and "fruit" in shown
    why = mpad("explain", tmp_path / "m", "the plum is long long", "--label", "long").stdout
    assert "long" in why
    mpad("report", tmp_path / "m", tagged, "--separator", ";", "--out", tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert "wrongly given" in page and "micro-F1" in page and "<b>long</b>" in page


def test_many_labels_by_a_baseline_from_file_to_file(tagged, tmp_path):
    done = mpad("fit", tagged, "--separator", ";", "--model", "tfidf-svm", "--out", tmp_path / "m")
    assert "120 documents, 3 classes" in done.stderr
    lines = mpad("predict", tmp_path / "m", tagged, "-f", "jsonl").stdout.splitlines()
    assert {"fruit", "long"} in [set(json.loads(line)["label"]) for line in lines]
    rows = mpad("evaluate", tmp_path / "m", tagged, "--separator", ";", "-f", "csv").stdout.splitlines()
    assert rows[0].endswith("right,missed,wrongly given") and [row.split(",")[0] for row in rows[1:]] == [
        *("fruit", "long", "tool", "(micro)", "(macro)")
    ]


def test_corrections_of_many_labels_win(tagged, tmp_path):
    text = rows_of(tagged)[0][0]
    (tmp_path / "corrections.csv").write_text(f'text,label\n"{text}",tool;long\na brand new gadget,\n')
    options = ["--model", "tfidf-svm", "--out", tmp_path / "m", "--add", tmp_path / "corrections.csv"]
    done = mpad("fit", tagged, "--separator", ";", *options)
    assert "1 labels corrected, 1 documents added" in done.stderr and "121 documents, 3 classes" in done.stderr
    rows = [{"text": text, "tags": tags.split(";")} for text, tags in rows_of(tagged)]
    (tmp_path / "lists.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "corrections.csv").write_text(f'text,label\n"{text}",tool;long\n')
    refused = mpad("fit", tmp_path / "lists.jsonl", *options, check=False)
    assert "give the separator of those in --add by --separator" in refused.stderr


def test_many_labels_compared(tagged):
    options = ["--separator", ";", "--folds", "2", "--models"]
    shown = mpad("compare", tagged, *options, "tfidf-svm", "-f", "csv").stdout.splitlines()
    assert (
        shown[0].startswith("model,micro-F1,low 95%,high 95%,macro-F1,all right")
        and float(shown[1].split(",")[1]) > 0.8
    )
    refused = mpad("compare", tagged, *options, "tfidf-svm,fasttext,wmd", check=False)
    assert "these models give one: fasttext, wmd; leave them out" in refused.stderr


def fit_once(data, out, *more):
    return mpad("fit", data, *"--text what --label kind --max-epochs 1 --out".split(), out, *more)


def test_corrections_win(model, data, tmp_path):
    text = next(row for row in rows_of(data) if row[1] == "fruit")
    (tmp_path / "corrections.csv").write_text(f'text,label\n"{text[0]}",tool\na brand new gadget,tool\n')
    done = fit_once(data, tmp_path / "m", "--add", tmp_path / "corrections.csv")
    assert "1 labels corrected, 1 documents added" in done.stderr and "121 documents" in done.stderr
    assert "continues" not in done.stderr
    again = fit_once(data, tmp_path / "m", "--add", tmp_path / "corrections.csv")
    assert f"training continues from the model in {tmp_path / 'm'}" in again.stderr
    assert "continues" not in fit_once(data, tmp_path / "m", "--add", tmp_path / "corrections.csv", "--anew").stderr


def test_held_out_documents_of_ones_own(data, tmp_path):
    (tmp_path / "held.csv").write_text("what,kind\na ripe plum,fruit\nthe drill,tool\n")
    done = fit_once(data, tmp_path / "m", "--validation", tmp_path / "held.csv")
    assert "; 2 documents)" in done.stderr and "TF-IDF + linear SVM" in done.stderr


def test_a_test_file_is_scored_beside_a_linear_svm(data, tmp_path):
    (tmp_path / "test.csv").write_text("what,kind\na ripe plum,fruit\nthe drill,tool\nthe moon,planet\na saw,tool\n")
    done = fit_once(data, tmp_path / "m", "--test", tmp_path / "test.csv")
    line = next(line for line in done.stderr.splitlines() if line.startswith("test accuracy"))
    assert "; 4 documents)" in line and "TF-IDF + linear SVM 75.0 %" in line


def test_examples_are_kept_when_asked_for(data, tmp_path):
    fit_once(data, tmp_path / "m", "--keep-examples")
    card = json.loads((tmp_path / "m" / "config.json").read_text())["card"]
    assert [label for label, _ in card["examples"]] == ["fruit"] * 3 + ["tool"] * 3
    lines = [line.split() for line in mpad("info", tmp_path / "m").stdout.splitlines()]
    assert ["examples", "6"] in [line[:2] for line in lines]


def test_several_files_one_after_another(data, tmp_path):
    copy = tmp_path / "more.csv"
    copy.write_bytes(data.read_bytes())
    done = fit_once(data, tmp_path / "m", copy)
    twice = f"{2 * len(rows_of(data)):,} documents, 2 classes"
    assert twice in done.stderr and "and 1 more" in mpad("info", tmp_path / "m").stdout


def test_thresholds_of_the_other_kind_are_refused(model):
    done = mpad("predict", model, "--threshold", "0.5", stdin="a plum\n", check=False)
    assert done.returncode == 1 and "this model gives one: use reject_below" in done.stderr


def test_report_is_one_page(model, data, tmp_path):
    out, rows = tmp_path / "report.html", rows_of(data)
    nasty = "<script>alert(1)</script> the drill"
    with (tmp_path / "d.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["text", "label"], *rows[:40], [nasty, "fruit"], ["a plum", "unseen"]])
    done = mpad("report", model, tmp_path / "d.csv", "--out", out, "--against", tmp_path / "d.csv")
    assert f"wrote {out} (42 documents)" in done.stderr
    page = out.read_text()
    for said in ("Each class", "Confusions", "Expected calibration error", "Top features per class", "Drift"):
        assert said in page
    assert "mistakes, and why" in page and "unseen" in page, "an unknown label is a mistake"
    assert "<script" not in page and "http" not in page.replace("http://www.w3.org/2000/svg", "")
    again = mpad("report", model, data, "--text", "what", "--label", "kind", "--out", out, check=False)
    assert again.returncode == 1 and "exists already" in again.stderr
    wrong = mpad("report", model, data, "--out", tmp_path / "r.pdf", check=False)
    assert wrong.returncode == 1 and ".html" in wrong.stderr


def test_many_documents_explained_to_a_folder(model, tmp_path):
    (tmp_path / "d.csv").write_text("text\na ripe plum\n<b>the drill</b>\n")
    done = mpad("explain", model, tmp_path / "d.csv", "--out", tmp_path / "why")
    assert "2 documents explained" in done.stderr
    assert sorted(file.name for file in (tmp_path / "why").iterdir()) == [
        "00001.html",
        "00002.html",
        "explanations.jsonl",
        "index.html",
    ]
    lines = (tmp_path / "why" / "explanations.jsonl").read_text().splitlines()
    assert {json.loads(line)["label"] for line in lines} == {"fruit", "tool"}
    assert "<b>" not in (tmp_path / "why" / "index.html").read_text()
    again = mpad("explain", model, tmp_path / "d.csv", "--out", tmp_path / "why", check=False)
    assert again.returncode == 1 and "exists already" in again.stderr


def test_explanations_are_checked_by_any_unit(model, data):
    arguments = "explain", model, data, "--text", "what", "--documents", "10", "--check"
    shown = mpad(*arguments, "--unit", "edge").stdout
    assert "by edge, 10 documents" in shown and "behind the best" in shown and "pairs of words carry" in shown
    record = json.loads(mpad(*arguments, "--method", "occlusion", "--format", "json").stdout)
    assert [(one["method"], one["unit"]) for one in record] == [("occlusion", "word"), ("random order", "word")]
    told = mpad(*arguments[:-1], "--corpus", "--unit", "word", check=False)
    assert told.returncode == 1 and "--unit is for --check" in told.stderr


def test_occlusion_takes_out_a_word_wherever_it_stands(model):
    arguments = "explain", model, "plum and plum", "--method", "occlusion", "--format", "json", "--label", "fruit"
    both, one = (json.loads(mpad(*arguments, "--unit", unit).stdout)["words"] for unit in ("word", "occurrence"))
    assert both[0]["weight"] == both[2]["weight"] and both[0]["weight"] != pytest.approx(one[0]["weight"])
    told = mpad(*arguments, "--unit", "edge", check=False)
    assert told.returncode == 1 and "no unit 'edge' here (known: word, occurrence)" in told.stderr


def test_confusions_of_many_classes_fit_a_narrow_terminal(capsys, monkeypatch):
    from mpad.cli.evaluate import _print_confusions

    monkeypatch.setenv("COLUMNS", "80")
    classes = [f"class number {k}" for k in range(20)]
    matrix = np.diag(np.full(20, 22))
    matrix[3, 4] = 7
    _print_confusions(classes, matrix)
    shown = capsys.readouterr().out.splitlines()
    assert shown[-1].split("  ")[0] == "class number 3" and shown[-1].endswith(" 7") and "most frequent" in shown[1]
    _print_confusions(classes[:3], matrix[:3, :3])
    assert "confusion matrix" in capsys.readouterr().out


def test_options_of_streams_are_refused_without_one(data, tmp_path):
    done = mpad("fit", data, "--workers", "2", "--out", tmp_path / "m", check=False)
    assert done.returncode == 1 and "--workers goes with --stream" in done.stderr and not (tmp_path / "m").exists()
    done = mpad("fit", data, "--stream", "--keep-examples", "--out", tmp_path / "m", check=False)
    assert done.returncode == 1 and "--keep-examples is for documents in memory" in done.stderr
