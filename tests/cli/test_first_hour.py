"""What a new user does in the first hour: columns, files, labels, and what the commands print about them."""

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet
import pytest

from mpad.cli.main import main
from mpad.data.tables import LABEL_NAMES, TEXT_NAMES
from mpad.errors import DataWarning

QUICK = ["--hidden", "4", "--max-epochs", "1", "--vectors", "none"]
STATIC = Path(__file__).parents[2] / "src" / "mpad" / "server" / "static"


@pytest.fixture
def mpad(monkeypatch, capsys):
    """Run a command: its exit code, output and messages."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["mpad", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
            sys.exit(0)
        return ended.value.code or 0, *capsys.readouterr()

    return run


def write(path, names, rows):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([names, *rows])
    return path


@pytest.fixture
def tweets(tmp_path, fruit_corpus):
    rows = [[k, text, label, k % 7] for k, (text, label) in enumerate(zip(*fruit_corpus, strict=True))]
    return write(tmp_path / "tweets.csv", ["id", "tweet", "kind", "retweets"], rows)


@pytest.fixture
def model(mpad, tweets, tmp_path):
    code, _, said = mpad("fit", tweets, "--out", tmp_path / "m", *QUICK)
    assert code == 0, said
    return tmp_path / "m"


class TestColumns:
    def test_common_names_are_known_and_every_command_names_what_it_reads(self, mpad, tweets, model):
        for command in ("fit", "evaluate", "report"):
            arguments = [tweets, "--out", model, "--force", *QUICK] if command == "fit" else [model, tweets]
            extra = ["--out", model.parent / "r.html", "--mistakes", "0"] if command == "report" else []
            code, _, said = mpad(command, *arguments, *extra)
            assert code == 0 and "text from 'tweet', label from 'kind'; not used: id, retweets" in said
        assert "text from 'tweet'" in mpad("predict", model, tweets)[2]

    def test_several_candidates_are_refused(self, mpad, tmp_path, fruit_corpus):
        rows = [["s", text, "store A", label] for text, label in zip(*fruit_corpus, strict=True)]
        data = write(tmp_path / "three.csv", ["subject", "description", "comment", "target"], rows)
        code, _, said = mpad("fit", data, "--out", tmp_path / "x", *QUICK)
        assert code == 1 and "could be the text: comment, description; name one with --text" in said
        code, _, said = mpad("fit", data, "--text", "description", "--out", tmp_path / "x", *QUICK)
        assert code == 0 and "text from 'description', label from 'target'; not used: subject, comment" in said

    def test_a_column_named_text_wins(self, mpad, tmp_path):
        rows = [["a b", "c", "x"], ["d e", "f", "y"]] * 4
        data = write(tmp_path / "a.csv", ["text", "description", "label"], rows)
        assert "text from 'text'" in mpad("data", "check", data)[2]

    @pytest.mark.parametrize("command", ["evaluate", "predict"])
    def test_a_second_text_column_is_joined(self, mpad, tweets, model, command):
        code, _, said = mpad(command, model, tweets, "--text", "tweet", "--text", "id")
        assert code == 0 and "text from 'tweet + id'" in said

    def test_the_model_remembers_its_columns(self, mpad, tmp_path, fruit_corpus):
        rows = [[text, label, "x"] for text, label in zip(*fruit_corpus, strict=True)]
        data = write(tmp_path / "odd.csv", ["words", "fate", "note"], rows)
        folder = tmp_path / "m"
        assert mpad("fit", data, "--text", "words", "--label", "fate", "--out", folder, *QUICK)[0] == 0
        for command in (["evaluate"], ["predict"], ["report", "--out", tmp_path / "r.html", "--mistakes", "0"]):
            code, _, said = mpad(command[0], folder, data, *command[1:])
            assert code == 0 and "text from 'words'" in said
        code, _, said = mpad("predict", folder, data, tmp_path / "answers", "--workers", "1")
        assert code == 0, said
        assert pyarrow.parquet.read_table(tmp_path / "answers" / "odd.parquet").num_rows == len(rows)

    def test_the_web_app_knows_the_same_names(self):
        lists = re.findall(r"const (?:TEXTS|LABELS) = (\[.*?\]);", (STATIC / "csv.js").read_text(), re.DOTALL)
        assert [tuple(json.loads(one)) for one in lists] == [TEXT_NAMES, LABEL_NAMES]


class TestOutput:
    @pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])
    @pytest.mark.parametrize("form", ["option", "argument"])
    def test_predictions_go_to_a_file_in_the_format_of_its_name(self, mpad, tweets, model, tmp_path, suffix, form):
        out = tmp_path / f"out{suffix}"
        code, printed, said = mpad("predict", model, tweets, *(["--out", out] if form == "option" else [out]))
        assert code == 0 and printed == "" and "(120 rows)" in said and out.is_file()
        if suffix == ".parquet":
            names = pyarrow.parquet.read_table(out).column_names
        elif suffix == ".jsonl":
            names = list(json.loads(out.read_text().splitlines()[0]))
        else:
            names = out.read_text().splitlines()[0].split("," if suffix == ".csv" else "\t")
        assert names == ["id", "tweet", "kind", "retweets", "label", "probability"]
        assert mpad("predict", model, tweets, "--out", out)[0] == 1
        assert mpad("predict", model, tweets, "--out", out, "--force")[0] == 0

    def test_a_document_in_quotes(self, mpad, model):
        code, printed, _ = mpad("predict", model, "a ripe plum", "--format", "jsonl")
        assert code == 0 and json.loads(printed)["text"] == "a ripe plum"
        assert "no such file" in mpad("predict", model, "typo.csv")[2]

    def test_formulas_are_escaped_on_request(self, mpad, model, tmp_path):
        data = write(tmp_path / "inj.csv", ["text"], [["=cmd|'/C calc'!A0"], ["@SUM(1)"], ["-2+3"], ["plain"]])
        out = tmp_path / "out.csv"
        assert mpad("predict", model, data, "--out", out, "--spreadsheet")[0] == 0
        assert [row[0][:1] for row in csv.reader(out.read_text().splitlines())][1:] == ["'", "'", "'", "p"]
        assert mpad("predict", model, data, "--out", out, "--force")[0] == 0
        assert [row[0] for row in csv.reader(out.read_text().splitlines())][1] == "=cmd|'/C calc'!A0"

    def test_nothing_is_replaced_unasked(self, mpad, tweets, model, tmp_path):
        kept = {file.name: file.read_bytes() for file in model.iterdir()}
        code, _, said = mpad("fit", tweets, "--out", model, *QUICK)
        assert code == 1 and "exists already" in said and "--force" in said
        assert {file.name: file.read_bytes() for file in model.iterdir()} == kept
        assert mpad("fit", tweets, "--out", model, "--force", *QUICK)[0] == 0
        precious = tmp_path / "precious.html"
        precious.write_text("mine")
        (tmp_path / "link.html").symlink_to(precious)
        for out in (precious, tmp_path / "link.html"):
            assert mpad("explain", model, "a ripe plum", "--out", out)[0] == 1
        assert mpad("explain", model, "a ripe plum", "--out", tmp_path / "link.html", "--force")[0] == 0
        assert precious.read_text() == "mine"

    def test_a_confusion_matrix_is_headed_by_names(self, mpad, tmp_path, fruit_corpus):
        rows = [[text, int(label == "tool")] for text, label in zip(*fruit_corpus, strict=True)]
        data = write(tmp_path / "d.csv", ["text", "label"], rows)
        assert mpad("fit", data, "--out", tmp_path / "m", *QUICK)[0] == 0
        lines = mpad("evaluate", tmp_path / "m", data)[1].splitlines()
        head = lines[next(k for k, line in enumerate(lines) if "confusion matrix" in line) + 1]
        assert head.split() == ["true", "0", "1"]


class TestLabels:
    def test_labels_that_the_data_does_not_have_are_refused(self, mpad, tweets, model, tmp_path):
        more = write(tmp_path / "more.csv", ["text", "label"], [["a new one", "vegetable"]])
        code, _, said = mpad("fit", tweets, "--add", more, "--out", model, *QUICK)
        assert code == 1 and "vegetable" in said and "--new-classes" in said
        code, _, said = mpad("fit", tweets, "--add", more, "--new-classes", "--anew", "--out", model, *QUICK)
        assert code == 0 and "3 classes" in said

    def test_several_labels_in_a_cell_get_a_hint(self, mpad, tmp_path, fruit_corpus):
        labels = [f"{label};{size}" for label, size in zip(fruit_corpus[1], ["big", "big", "small"] * 40, strict=True)]
        data = write(tmp_path / "many.csv", ["text", "label"], zip(fruit_corpus[0], labels, strict=True))
        assert "--separator ';'" in mpad("data", "check", data)[1]
        with pytest.raises(DataWarning, match="--separator ';'"):  # warnings are errors in tests
            mpad("fit", data, "--out", tmp_path / "m", *QUICK)

    def test_data_check_takes_whole_numbers(self, mpad, tmp_path):
        texts = [f"the film number {k} is a good one and i like to see it" for k in range(12)]
        rows = [*[[text, k % 2] for k, text in enumerate(texts)], [texts[0].upper(), 1]]
        code, printed, said = mpad(
            "data", "check", write(tmp_path / "d.csv", ["text", "label"], rows), "--format", "jsonl"
        )
        assert code == 0, said
        found = {row["what"]: row["how many"] for row in map(json.loads, printed.splitlines())}
        assert found["class: 0"] == 6 and found["class: 1"] == 7 and found["documents"] == 13
        assert found["texts with more than one label"] == 1 and found["documents that repeat an earlier text"] == 1
        assert found["words per document, median"] == 14 and found["language: English"] == 13
        assert found["documents that nearly repeat an earlier text"] >= 1


class TestWords:
    def test_predict_reports_how_many_words_are_known(self, mpad, model):
        assert "knows 0 of 3 words (0 %)" in mpad("predict", model, "qwzx plonk vrrm")[2]

    def test_fit_reports_how_many_words_the_vectors_know(self, mpad, tweets, tmp_path, static_vectors):
        code, _, said = mpad("fit", tweets, "--out", tmp_path / "s", *QUICK[:4], "--vectors", static_vectors)
        assert code == 0 and re.search(r"the word vectors know \d+ of \d+ distinct words", said)


@pytest.mark.parametrize(
    "arguments",
    [
        ["compare", "DATA", "--models", "mpad,nosuch"],
        ["fit", "DATA", "--text", "nope", "--out", "OUT"],
        ["fit", "DATA", "--model", "nosuch", "--out", "OUT"],
        ["evaluate", "MODEL", "DATA", "--text", "nope"],
        ["report", "MODEL", "DATA", "--text", "nope", "--out", "OUT.html"],
        ["predict", "MODEL", "DATA", "--text", "nope"],
        ["explain", "MODEL", "a plum", "--label", "nope"],
        ["explain", "MODEL", "a plum", "--method", "nope"],
    ],
)
def test_arguments_are_checked_before_torch_is_imported(tweets, model, tmp_path, arguments):
    named = {"DATA": tweets, "MODEL": model, "OUT": tmp_path / "out", "OUT.html": tmp_path / "out.html"}
    code = "import sys\nfrom mpad.cli.main import main\ntry:\n    main()\nfinally:\n    print('torch' in sys.modules)"
    command = [sys.executable, "-c", code, *[str(named.get(one, one)) for one in arguments]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 1 and "mpad: " in done.stderr and done.stdout.strip() == "False", done.stderr


def test_documents_without_words_are_reported(mpad, model):
    for text in ("", "日本"):
        assert "reads no word of 1 documents" in mpad("predict", model, text)[2]
