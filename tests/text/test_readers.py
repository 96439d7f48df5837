import csv
import gzip
import lzma
import zipfile

import pyarrow
import pyarrow.parquet
import pytest

from mpad.errors import DataFileError
from mpad.text.readers import read_documents

CSV = 'text,label\n"good, very",pos\n"two\nlines",neg\n'


def test_csv_with_quotes_and_line_breaks(tmp_path):
    (tmp_path / "d.csv").write_text(CSV)
    documents = read_documents(tmp_path / "d.csv")
    assert documents.texts == ["good, very", "two\nlines"] and documents.labels == ["pos", "neg"]


def test_named_columns(tmp_path):
    (tmp_path / "d.csv").write_text("id,blurb,stars\n1,fine,5\n")
    documents = read_documents(tmp_path / "d.csv", text="blurb", label="stars")
    assert documents.texts == ["fine"] and documents.labels == ["5"]


def test_tsv_with_and_without_header_takes_quotes_literally(tmp_path):
    (tmp_path / "a.tsv").write_text('label\ttext\npos\t"a b\n')
    (tmp_path / "c.tsv").write_text("label\ttweet\npos\ta\n")
    with pytest.raises(DataFileError, match="no column of text among label, tweet"):
        read_documents(tmp_path / "c.tsv")
    (tmp_path / "b.tsv").write_text('pos\t"a b\nneg\tc\n')
    assert read_documents(tmp_path / "a.tsv").texts == ['"a b']
    documents = read_documents(tmp_path / "b.tsv")
    assert documents.texts == ['"a b', "c"] and documents.labels == ["pos", "neg"]


def test_json_lines(tmp_path):
    (tmp_path / "d.jsonl").write_text('{"text": "a\\u2028b", "label": 1}\n\n{"label": 0, "text": "c"}\n')
    documents = read_documents(tmp_path / "d.jsonl")
    assert documents.texts == ["a\u2028b", "c"] and documents.labels == ["1", "0"]


def test_parquet(tmp_path):
    table = pyarrow.table({"text": ["a", None], "label": ["x", "y"], "other": [1, 2]})
    pyarrow.parquet.write_table(table, tmp_path / "d.parquet")
    documents = read_documents(tmp_path / "d.parquet")
    assert documents.texts == ["a", ""] and documents.labels == ["x", "y"]


def test_packed(tmp_path):
    (tmp_path / "d.csv.gz").write_bytes(gzip.compress(CSV.encode()))
    (tmp_path / "d.csv.xz").write_bytes(lzma.compress(CSV.encode()))
    for name in ("d.csv.zip", "d.zip"):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr("inside.csv", CSV)
    for name in ("d.csv.gz", "d.csv.xz", "d.csv.zip", "d.zip"):
        assert read_documents(tmp_path / name).labels == ["pos", "neg"]


def test_folder_of_class_folders(tmp_path):
    for label, text in (("pos", "good"), ("neg", "bad")):
        (tmp_path / label).mkdir()
        (tmp_path / label / "1.txt").write_text(text)
    documents = read_documents(tmp_path)
    assert documents.texts == ["bad", "good"] and documents.labels == ["neg", "pos"]


def test_plain_text_for_prediction(tmp_path):
    (tmp_path / "d.txt").write_text("one\n\ntwo\n")
    assert read_documents(tmp_path / "d.txt", need_labels=False).texts == ["one", "", "two"]
    with pytest.raises(DataFileError, match="plain text has no labels"):
        read_documents(tmp_path / "d.txt")


def test_labels_may_be_missing_for_prediction(tmp_path):
    (tmp_path / "d.csv").write_text("text\na\n")
    assert read_documents(tmp_path / "d.csv", need_labels=False).labels is None


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("d.csv", b"text,label\na,x\nb,y,z\n", r"d.csv, line 3: expected 2 fields, found 3"),
        ("d.csv", b'text,label\n"a\nb",x\nc,y,z\n', r"d.csv, line 4: expected 2 fields, found 3"),
        ("d.csv", b"text,label\nok,x\n\xff\xfe,x\n", r"d.csv, line 3: byte 0xff is not UTF-8"),
        ("d.csv", b'text,label\n"never closed,x\n', r"d.csv, line 2: "),
        ("d.csv", b"", "the file is empty"),
        ("d.csv", b"a,b\n1,2\n", "no column of text among a, b; name it with --text"),
        ("d.csv", b"text,b\n1,2\n", "no column of labels among text, b; name it with --label"),
        ("d.jsonl", b'{"text": "a", "label": 1}\n{"text": \n', r"d.jsonl, line 2: not JSON"),
        ("d.jsonl", b'{"text": "a", "label": 1}\n{"text": "b"}\n', r"line 2: no 'label' in this object"),
        ("d.jsonl", b'{"text": 3, "label": 1}\n', r"line 1: 'text' is not a string"),
        ("d.jsonl", b"[1]\n", r"item 1: expected a JSON object, found int"),
        ("d.parquet", b"nonsense", "not a Parquet file"),
        ("d.csv.gz", b"nonsense", "cannot be unpacked"),
        ("d.zip", b"nonsense", "cannot be unpacked"),
        ("d.csv", b"text,label\na,\n", r"line 2: the label is missing"),
        ("d.jsonl", b'{"text": "a", "label": null}\n', r"line 1: the label is missing"),
        ("d.doc", b"", r"'\.doc' is none of these"),
        ("d.jsonl", b"[" * 100_000, "not JSON: lists and objects inside one another"),
        ("d.jsonl", b'{"text": "a", "label": ' + b"1" * 5000 + b"}", "line 1: not JSON: Exceeds the limit"),
        (
            "d.jsonl",
            b'{"text": "a", "label": ["x"]}',
            r"line 1: the label is list, \['x'\]; expected a string or a number",
        ),
        ("d.jsonl", b'{"text": "a", "label": NaN}', r"line 1: the label is missing"),
        ("d.csv", b"text,label,label\na,x,y\n", "2 columns are named 'label'; rename all but one"),
        ("d.csv", "text,label\na,x\n".encode("utf-16-le"), r"every other byte is zero.*iconv -f UTF-16LE"),
        (
            "d.csv",
            ",".join(f"c{k}" for k in range(9999)).encode() + b"\n",
            r"no column of text among c0, .*9,999 in all",
        ),
        ("d.csv.xz", lzma.compress(b"text,label\n")[:-9], "cannot be unpacked"),
    ],
)
def test_problems_name_the_line(tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataFileError, match=said):
        read_documents(tmp_path / name)


def test_what_is_not_there(tmp_path):
    with pytest.raises(DataFileError, match="no such file"):
        read_documents(tmp_path / "nothing.csv")
    with pytest.raises(DataFileError, match="a folder for each class"):
        read_documents(tmp_path)
    (tmp_path / "d.csv").write_text("text,label\na,x\n")
    with pytest.raises(DataFileError, match="no column 'blurb' for --text"):
        read_documents(tmp_path / "d.csv", text="blurb")


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiters_are_guessed(tmp_path, delimiter):
    rows = [["id", "text", "label"], ["1", "good, very good; fine | so", "x"], ["2", "bad", "y"]]
    with (tmp_path / "d.csv").open("w", newline="") as file:
        csv.writer(file, delimiter=delimiter).writerows(rows)
    documents = read_documents(tmp_path / "d.csv")
    assert documents.texts == ["good, very good; fine | so", "bad"] and documents.labels == ["x", "y"]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_byte_order_marks_are_followed(tmp_path, encoding):
    (tmp_path / "d.csv").write_text("text,label\nschön,x\n", encoding=encoding)
    assert read_documents(tmp_path / "d.csv").texts == ["schön"]


def test_an_array_of_objects_is_read(tmp_path):
    (tmp_path / "d.json").write_text('[{"text": "a", "label": 1},\n {"text": "b", "label": 2}]')
    assert read_documents(tmp_path / "d.json").labels == ["1", "2"]


def test_parquet_holds_text(tmp_path):
    def written(**columns):
        pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "d.parquet")
        return tmp_path / "d.parquet"

    assert read_documents(written(text=["a", None], label=["x", "y"])).texts == ["a", ""]
    with pytest.raises(DataFileError, match="holds binary, not text"):
        read_documents(written(text=[b"a"], label=["x"]))
    with pytest.raises(DataFileError, match="unpacks to more than"):  # one long string, many times by its number
        read_documents(
            written(text=pyarrow.array(["x" * 10**6]).dictionary_encode().take([0] * 100), label=["x"] * 100)
        )
    with pytest.raises(DataFileError, match="holds int64, not text"):
        read_documents(written(text=[1], label=["x"]))
    with pytest.raises(DataFileError, match="row 2: the label is missing"):
        read_documents(written(text=["a", "b"], label=[1.0, float("nan")]))
    bad = pyarrow.Array.from_buffers(pyarrow.string(), 1, pyarrow.array([b"\xff\xfe"]).buffers())
    with pytest.raises(DataFileError, match="not UTF-8"):
        read_documents(written(text=bad, label=["x"]))
