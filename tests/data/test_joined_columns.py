"""Several text columns are read as one: --text title --text body, or text="title + body" in Python."""

import csv
import json
import subprocess
import sys

import pytest

from mpad.data.readers import choose_columns, read_documents, read_rows
from mpad.errors import DataFileError

ROWS = [("a title", "the body", "x", "1"), ("", "only a body", "y", "2"), ("only a title", "", "x", "3")]


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("title", "body", "label", "id"), *ROWS])
    return path


def test_texts_are_joined_by_a_line_break(table):
    documents = read_documents(table, "title + body")
    assert documents.texts == ["a title\nthe body", "only a body", "only a title"]
    assert documents.labels == ["x", "y", "x"] and documents.ids == ["1", "2", "3"]
    assert documents.columns.text == "title + body" and documents.columns.unused == ("id",)
    assert read_documents(table, "title + body + id").texts[0] == "a title\nthe body\n1"


def test_a_model_remembers_the_columns(table):
    remembered = read_documents(table, "title + body").columns
    assert read_documents(table, remembered=remembered).texts[0] == "a title\nthe body"
    assert choose_columns(table, None, None, remembered=remembered).text == "title + body"
    rows = read_rows(table, remembered=remembered)
    assert rows.names[rows.text_at] == "title + body" and rows.cells[1][rows.text_at] == "only a body"


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet", ".tsv"])
def test_other_formats_too(tmp_path, suffix):
    path, records = tmp_path / f"table{suffix}", [dict(zip(("title", "body"), row, strict=False)) for row in ROWS]
    if suffix == ".parquet":
        import pyarrow
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(records), path)
    elif suffix == ".tsv":
        path.write_text("title\tbody\n" + "".join(f"{row['title']}\t{row['body']}\n" for row in records))
    else:
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
    assert read_documents(path, "title + body", need_labels=False).texts[0] == "a title\nthe body"


def test_a_column_of_that_very_name_is_read_as_it_is(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("title,body,title + body,label\na,b,c,x\n")
    assert read_documents(path, "title + body").texts == ["c"]


def test_a_missing_column_is_named(table):
    with pytest.raises(DataFileError, match="no column 'title \\+ nothing'"):
        read_documents(table, "title + nothing")


def test_from_the_shell(tmp_path):
    with (tmp_path / "train.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("title", "body", "label"))
        for k in range(40):
            writer.writerow((f"title {k}", f"{('apple', 'hammer')[k % 2]} on the table", ("fruit", "tool")[k % 2]))

    def run(*arguments):
        command = [sys.executable, "-m", "mpad", *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=1_200)

    fitted = run("fit", "train.csv", "--text", "title", "--text", "body", "--out", "model")
    assert fitted.returncode == 0 and "text from 'title + body'" in fitted.stderr, fitted.stderr
    predicted = run("predict", "model", "train.csv", "--format", "csv")
    rows = list(csv.DictReader(predicted.stdout.splitlines()))
    assert list(rows[0]) == ["title", "body", "label", "predicted label", "probability"]
    assert [row["predicted label"] for row in rows[:2]] == ["fruit", "tool"]
    assert run("predict", "model", "train.csv", "out").returncode == 0
    assert run("evaluate", "model", "train.csv", "--slices", "auto", "--mistakes", "wrong.csv").returncode == 0
    assert (tmp_path / "wrong.csv").read_text().startswith("id,text,label,predicted,probability")
