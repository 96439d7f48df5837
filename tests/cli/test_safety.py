"""What the commands promise: nothing lost, one line for what is wrong, nothing that steers a terminal."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from mpad.cli.main import main
from mpad.errors import StoreError
from mpad.paper import zoo
from mpad.training.engine import Engine

QUICK = ["--hidden", "16", "--max-epochs", "2"]


@pytest.fixture
def mpad(monkeypatch, capsys):
    """Run a command: its exit code, output and messages."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["mpad", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
            sys.exit(0)
        out, err = capsys.readouterr()
        lines = [line for line in err.splitlines(keepends=True) if ": text from " not in line]  # which columns it read
        return ended.value.code or 0, out, "".join(lines)

    return run


@pytest.fixture
def data(tmp_path, fruit_corpus):
    file = tmp_path / "d.csv"
    file.write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in zip(*fruit_corpus, strict=True)))
    return file


def no_training(monkeypatch):
    def fail(*_):
        raise AssertionError("it trained before it looked")

    monkeypatch.setattr(Engine, "finish", fail)


def test_a_strangers_folder_is_refused_before_training(mpad, data, tmp_path, monkeypatch):
    no_training(monkeypatch)
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "config.json").write_text("{}")
    (tmp_path / "p" / "precious").write_text("x")
    code, _, said = mpad("fit", data, "--out", tmp_path / "p", *QUICK)
    assert code == 1 and "is not a model; choose another folder" in said and said.count("\n") == 1
    assert (tmp_path / "p" / "precious").read_text() == "x"


@pytest.mark.parametrize("out", ["d.csv", "d.csv/below", ".", "/proc/none/m"])
def test_places_that_cannot_be_written_are_refused_before_training(mpad, data, tmp_path, monkeypatch, out):
    no_training(monkeypatch)
    monkeypatch.chdir(tmp_path)
    code, _, said = mpad("fit", data, "--out", out, *QUICK)
    assert code == 1 and said.startswith("mpad: ") and said.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d.csv"]


def test_a_model_that_cannot_be_saved_is_saved_elsewhere(mpad, data, tmp_path, monkeypatch):
    real, refused = zoo.TextClassifier.save, []

    def save(self, folder):
        if not refused:
            refused.append(folder)
            raise StoreError(f"{folder}: cannot be written: the disk is full")
        real(self, folder)

    monkeypatch.setattr(zoo.TextClassifier, "save", save)
    code, _, said = mpad("fit", data, "--out", tmp_path / "m", *QUICK)
    assert code == 1 and "the disk is full; the model was saved to " in said
    place = said.rsplit("saved to ", 1)[1].split(" instead")[0]
    assert zoo.load(place, "cpu").predict(["an apple"]).shape == (1,)


def test_diverged_training_leaves_the_good_model(mpad, data, tmp_path):
    assert mpad("fit", data, "--out", tmp_path / "m", *QUICK)[0] == 0
    before = {file.name: file.read_bytes() for file in (tmp_path / "m").iterdir()}
    code, _, said = mpad("fit", data, "--out", tmp_path / "m", *QUICK, "--force", "--learning-rate", "1e30")
    assert code == 1 and "training diverged in epoch" in said and "learning_rate is 1e+30" in said
    assert {file.name: file.read_bytes() for file in (tmp_path / "m").iterdir()} == before


@pytest.mark.parametrize("command", ["compare", "fit"])
def test_ctrl_c(mpad, data, tmp_path, monkeypatch, command):
    """It stops `compare`; of `fit` it keeps the best epoch."""
    real, epochs = Engine.finish, []

    def finish(self):
        epochs.append(1)
        if len(epochs) == 3:
            raise KeyboardInterrupt
        return real(self)

    monkeypatch.setattr(Engine, "finish", finish)
    if command == "compare":
        code, out, _ = mpad("compare", data, "--models", "mpad", "--folds", "2", "--max-epochs", "3")
        assert code == 130 and out == "" and len(epochs) == 3
    else:
        code, _, said = mpad("fit", data, "--out", tmp_path / "m", "--hidden", "16", "--max-epochs", "9")
        assert code == 0 and "interrupted; kept epoch" in said
        assert zoo.load(tmp_path / "m", "cpu").card_["interrupted"] is True


def test_ctrl_c_is_raised_in_a_cross_validation(fruit_corpus, monkeypatch):
    from sklearn.model_selection import cross_val_score

    from mpad import MPADClassifier, cross_validate

    def finish(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(Engine, "finish", finish)
    model = MPADClassifier(hidden=16, max_epochs=2, device="cpu")
    with pytest.raises(KeyboardInterrupt):
        cross_val_score(model, *fruit_corpus, cv=2)
    with pytest.raises(KeyboardInterrupt):
        cross_validate(model, *fruit_corpus, cv=2)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--hidden", "100000000"], "hidden must be a whole number from 1 to 65,536"),
        (["--hidden", "65000"], "parameters, word vectors included, and takes"),
        (["--steps", "1000000000"], "steps must be a whole number from 1 to 100"),
        (["--window", "0"], "window must be at least 1"),
    ],
)
def test_sizes_beyond_sense_are_one_line(mpad, data, tmp_path, arguments, said):
    code, _, err = mpad("fit", data, "--out", tmp_path / "m", *QUICK, *arguments)
    assert code == 1 and said in err and err.count("\n") == 1


def test_a_huge_window_is_no_hang(mpad, data, tmp_path):
    assert mpad("fit", data, "--out", tmp_path / "m", *QUICK, "--window", "1000000000")[0] == 0
    long = tmp_path / "long.txt"
    long.write_text("word " * 100_000)
    code, _, said = mpad("predict", tmp_path / "m", long)
    assert code == 1 and "pairs of words: choose a smaller window" in said


def test_a_rival_is_not_explained(mpad, data, tmp_path):
    assert mpad("fit", data, "--out", tmp_path / "svm", "--model", "tfidf-svm")[0] == 0
    code, _, said = mpad("explain", tmp_path / "svm", "an apple")
    assert code == 1 and "a 'tfidf-svm' cannot be explained; these can: mpad, mpad-sentence-att" in said
    assert mpad("fit", data, "--out", tmp_path / "m", *QUICK)[0] == 0
    code, _, said = mpad("explain", tmp_path / "m", data)
    assert code == 1 and "is a file: explain its documents together by --corpus" in said


def test_info_shows_where_a_model_comes_from(mpad, data, tmp_path):
    assert mpad("fit", data, "--out", tmp_path / "m", *QUICK)[0] == 0
    shown = json.loads(mpad("info", tmp_path / "m", "--json")[1])
    assert shown["format"] == 8 and shown["checksums"] == "right, of 3 files" and shown["data"] == "d.csv"
    assert shown["documents"] == 120 and shown["held out"] == 12 and 0 <= shown["validation accuracy"] <= 1
    assert shown["trained"].startswith("20")
    assert mpad("fit", data, "--out", tmp_path / "svm", "--model", "tfidf-svm")[0] == 0
    assert json.loads(mpad("info", tmp_path / "svm", "--json")[1])["documents"] == 120


def test_a_tokenizer_of_ones_own_is_named_by_the_caller(mpad, data, tmp_path, monkeypatch):
    (tmp_path / "words_of_mine.py").write_text("def split(text):\n    return text.lower().split()\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    own = ["--tokenizer", "words_of_mine:split"]
    assert mpad("fit", data, "--out", tmp_path / "m", *QUICK, *own)[0] == 0
    code, _, said = mpad("predict", tmp_path / "m", data)
    assert (
        code == 1 and "a tokenizer of its own, 'words_of_mine:split'" in said and "--tokenizer module:function" in said
    )
    for command in (["predict"], ["evaluate"]):
        assert mpad(*command, tmp_path / "m", data, *own)[0] == 0
    assert mpad("info", tmp_path / "m", *own)[0] == 0


def test_nothing_of_a_document_steers_the_terminal(mpad, tmp_path):
    rows = [f"\x1b[2Jan apple{'' if k % 2 else ' x'},\x1b[31mfruit\n\x9b1ma saw,tool\u202e\n" for k in range(20)]
    data = tmp_path / "d.csv"
    data.write_text("text,label\n" + "".join(rows))
    assert mpad("fit", data, "--out", tmp_path / "m", *QUICK)[0] == 0
    for command in (["predict"], ["evaluate"]):
        code, out, _ = mpad(*command, tmp_path / "m", data)
        assert code == 0 and not set(out) & {"\x1b", "\x9b", "\u202e"} and r"\x1b[31mfruit" in out
    for more in ([], ["--format", "keywords"]):
        code, out, _ = mpad("explain", tmp_path / "m", "\x1b[2Jan apple \x07", *more)
        assert code == 0 and not set(out) & {"\x1b", "\x07"}
    code, out, _ = mpad("predict", tmp_path / "m", data, "--format", "csv")
    assert "\x1b[31mfruit" in out  # a file gets what was there


def test_data_check(mpad, tmp_path):
    (tmp_path / "a.csv").write_text("text,label\ngood film,pos\nbad film,neg\ngood film,pos \n")
    (tmp_path / "b.csv").write_text("text;label\nGood film;pos\n")
    code, out, _ = mpad("data", "check", tmp_path / "a.csv", tmp_path / "b.csv", "--format", "jsonl")
    rows = [json.loads(line) for line in out.splitlines()]
    found = {(os.path.basename(row["file"]), row["what"]): row["how many"] for row in rows}
    assert code == 0 and found["a.csv", "documents that repeat an earlier text"] == 1
    assert found["a.csv", "labels that hardly differ (spaces, capitals)"] == 2
    assert found["b.csv", "documents of the second file that the first has too"] == 1


def test_data_check_goes_on_over_rows_without_a_label(mpad, tmp_path):
    rows = ["good film,pos", "bad film,", "no film,neg", "odd film, ", "good film,pos"]
    (tmp_path / "a.csv").write_text("text,label\n" + "\n".join(rows) + "\n")
    code, out, _ = mpad("data", "check", tmp_path / "a.csv", "--format", "jsonl")
    found = {row["what"]: row for row in map(json.loads, out.splitlines())}
    assert code == 0 and found["documents"]["how many"] == 3
    missing = found["documents without a label"]
    assert missing["how many"] == 2 and missing["for example"] == "line 3, line 5"
    assert found["documents that repeat an earlier text"]["how many"] == 1
    code, _, err = mpad("fit", tmp_path / "a.csv", "--out", tmp_path / "m", *QUICK)
    assert code == 1 and "line 3: the label is missing" in err


def test_a_table_in_a_pipe_has_a_line_a_row(capsys, monkeypatch):
    from mpad.cli.output import Format, print_rows

    monkeypatch.delenv("COLUMNS", raising=False)
    print_rows(["label", "text"], [["a", "word " * 18], ["b", "word"]], Format.table)
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_answers_that_are_not_finite_are_refused(fitted_flat):
    from mpad.errors import NotFinite

    with pytest.raises(NotFinite, match="NaN or infinite"):
        fitted_flat.model_.labels.probabilities(np.array([[np.nan, 1.0]], np.float32))
    with pytest.raises(NotFinite):
        fitted_flat.model_.labels.decide(np.array([[np.inf, 1.0]], np.float32))


def test_ctrl_c_before_the_first_epoch_ends_leaves_the_good_model(mpad, data, tmp_path, monkeypatch):
    assert mpad("fit", data, "--out", tmp_path / "m", *QUICK)[0] == 0
    before = {file.name: file.read_bytes() for file in (tmp_path / "m").iterdir()}

    def finish(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(Engine, "finish", finish)
    assert mpad("fit", data, "--out", tmp_path / "m", "--force", *QUICK)[0] == 130
    assert {file.name: file.read_bytes() for file in (tmp_path / "m").iterdir()} == before


@pytest.mark.parametrize("model", ["mpad", "tfidf-svm"])
def test_a_strangers_file_where_a_checkpoint_would_be(mpad, data, tmp_path, model):
    (tmp_path / "m.checkpoint").write_text("my thesis")
    code, _, said = mpad("fit", data, "--out", tmp_path / "m", "--model", model, *QUICK)
    assert (tmp_path / "m.checkpoint").read_text() == "my thesis"
    assert code == (0 if model == "tfidf-svm" else 1) and ("not a checkpoint" in said) == (model == "mpad")


def test_only_what_a_model_wrote_is_its_own(mpad, data, tmp_path):
    assert mpad("fit", data, "--out", tmp_path / "m", *QUICK)[0] == 0
    (tmp_path / "m" / "model.bin").write_text("precious")
    code, _, said = mpad("fit", data, "--out", tmp_path / "m", *QUICK)
    assert code == 1 and "holds more than a model (model.bin)" in said
    assert (tmp_path / "m" / "model.bin").read_text() == "precious"
    (tmp_path / "m" / "model.bin").unlink()
    (tmp_path / "m" / "vocabulary.json").unlink()
    (tmp_path / "m" / "vocabulary.json").mkdir()
    code, _, said = mpad("fit", data, "--out", tmp_path / "m", *QUICK)
    assert code == 1 and "holds more than a model (vocabulary.json)" in said


def test_fewer_epochs_than_were_done(mpad, data, tmp_path, monkeypatch):
    real, epochs = Engine.finish, []

    def finish(self):
        epochs.append(1)
        if len(epochs) == 5:
            raise RuntimeError("the machine went down")
        return real(self)

    monkeypatch.setattr(Engine, "finish", finish)
    with pytest.raises(RuntimeError):
        mpad("fit", data, "--out", tmp_path / "m", "--hidden", "16", "--max-epochs", "9")
    code, _, said = mpad("fit", data, "--out", tmp_path / "m", "--hidden", "16", "--max-epochs", "2", "--resume")
    assert code == 0 and "4 epochs were done already, more than --max-epochs 2" in said


@pytest.mark.parametrize("form", ["table", "jsonl", "csv"])
def test_any_text_can_be_printed(mpad, data, tmp_path, form):
    assert mpad("fit", data, "--out", tmp_path / "m", *QUICK)[0] == 0
    texts = ["a [/x] b", r"foo \[/x] b", r"hi :smile: \[red]x", "bad \ud800 film", "schön 电影"]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    command = [sys.executable, "-c", "from mpad.cli.main import main; main()", "predict"]
    for encoding in ("utf-8", "ascii"):
        done = subprocess.run(
            [*command, str(tmp_path / "m"), str(tmp_path / "d.jsonl"), "--format", form],
            capture_output=True,
            env={**os.environ, "PYTHONIOENCODING": encoding, "COLUMNS": "200"},
        )
        assert done.returncode == 0, done.stderr
        shown = done.stdout.decode()
        assert "a [/x] b" in shown and ":smile:" in shown


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--tokenizer", "builtins:eval"], "the tokenizer 'builtins:eval' failed on"),
        (["--tokenizer", "os:sep"], "is str, not a function from a text to its words"),
        (["--device", "meta"], "device 'meta' cannot be used here"),
    ],
)
def test_odd_options_are_one_line(mpad, data, tmp_path, arguments, said):
    code, _, err = mpad("fit", data, "--out", tmp_path / "m", *QUICK, *arguments)
    assert code == 1 and said in err and err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["fit"], "mpad: Missing argument 'DATA...'; see mpad fit --help"),
        (["fit", "d.csv", "--window", "x"], "mpad: Invalid value for '--window'"),
        (["predict", "--nothing"], "mpad: No such option: --nothing; see mpad predict --help"),
        (["nothing"], "mpad: No such command 'nothing'; see mpad --help"),
    ],
)
def test_a_wrong_command_line_is_one_line(mpad, arguments, said):
    code, out, err = mpad(*arguments)
    assert code == 2 and err.startswith(said) and err.count("\n") == 1 and out == ""


def test_without_arguments_there_is_help(mpad):
    code, out, err = mpad()
    assert code == 2 and "Usage: mpad" in out and err == ""


def test_a_link_that_leads_to_itself(mpad, data, tmp_path):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    code, _, err = mpad("fit", data, "--out", tmp_path / "loop", *QUICK)
    assert code == 1 and "cannot be written" in err and err.count("\n") == 1


@pytest.mark.parametrize("name", ["config.json", "SHA256SUMS", "model.safetensors"])
def test_pipes_and_devices_are_no_files_of_a_model(mpad, data, tmp_path, name):
    assert mpad("fit", data, "--out", tmp_path / "m", *QUICK)[0] == 0
    for make in (os.mkfifo, lambda path: path.symlink_to("/dev/zero")):
        (tmp_path / "m" / name).unlink()
        make(tmp_path / "m" / name)
        assert mpad("info", tmp_path / "m")[0] == 1
        assert mpad("fit", data, "--out", tmp_path / "m", *QUICK)[0] == 1
    os.mkfifo(tmp_path / "d.zip")
    assert mpad("predict", tmp_path / "m", tmp_path / "d.zip")[0] == 1


def test_resume_without_a_checkpoint_does_not_replace_a_model(mpad, data, tmp_path, monkeypatch):
    assert mpad("fit", data, "--out", tmp_path / "m", "--model", "tfidf-svm")[0] == 0
    no_training(monkeypatch)
    before = (tmp_path / "m" / "SHA256SUMS").read_bytes()
    code, _, said = mpad("fit", data, "--out", tmp_path / "m", "--resume", *QUICK)
    assert code == 1 and "exists already" in said and (tmp_path / "m" / "SHA256SUMS").read_bytes() == before


def test_predictions_of_predictions_keep_every_column(mpad, data, tmp_path):
    mpad("fit", data, "--out", tmp_path / "m", "--model", "tfidf-svm")
    rows = data
    for number in range(3):
        assert mpad("predict", tmp_path / "m", rows, "--out", tmp_path / f"{number}.csv")[0] == 0
        rows = tmp_path / f"{number}.csv"
    names = rows.read_text().splitlines()[0].split(",")
    assert names == ["text", "label", *(f"{'predicted ' * k}label" for k in (1, 2, 3))]


def test_a_first_file_that_cannot_be_read_does_not_stop_the_others(mpad, data, tmp_path):
    mpad("fit", data, "--out", tmp_path / "m", *QUICK)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("x,y\n1,2\n")
    (tmp_path / "in" / "b.csv").write_text("text\na plum\n")
    code, _, said = mpad("predict", tmp_path / "m", tmp_path / "in", tmp_path / "preds", "--workers", "1")
    assert code == 1 and "a.csv" in said and [file.name for file in (tmp_path / "preds").glob("*.parquet")]


def test_names_of_datasets_and_files_are_told_apart(mpad, data, tmp_path):
    assert "no dataset 'twets'" in mpad("data", "export", "twets", tmp_path / "t.csv")[2]
    assert "ends in .csv" in mpad("data", "export", "tweets", tmp_path / "t.jsonl")[2]
    assert "no such file" in mpad("data", "check", tmp_path / "none.csv")[2]
    mpad("fit", data, "--out", tmp_path / "m", "--model", "tfidf-svm")
    assert "'tfidf-svm' is not a network" in mpad("export", tmp_path / "m", "--int8", tmp_path / "small")[2]
