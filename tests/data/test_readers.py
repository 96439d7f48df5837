import csv
import gzip
import lzma
import zipfile

import pyarrow
import pyarrow.parquet
import pytest

from mpad.data.readers import Documents, read_documents, read_rows
from mpad.errors import DataFileError, InputError
from mpad.files import archives

CSV = 'text,label\n"good, very",pos\n"two\nlines",neg\n'


def test_csv_with_quotes_and_line_breaks(tmp_path):
    (tmp_path / "d.csv").write_text(CSV)
    documents = read_documents(tmp_path / "d.csv")
    assert documents.texts == ["good, very", "two\nlines"] and documents.labels == ["pos", "neg"]


def test_named_columns(tmp_path):
    (tmp_path / "d.csv").write_text("id,blurb,stars\n1,fine,5\n")
    documents = read_documents(tmp_path / "d.csv", text="blurb", label="stars")
    assert documents.texts == ["fine"] and documents.labels == [5]


def test_tsv_with_and_without_header_takes_quotes_literally(tmp_path):
    (tmp_path / "a.tsv").write_text('label\ttext\npos\t"a b\n')
    (tmp_path / "c.tsv").write_text("label\twords\npos\ta\n")
    with pytest.raises(DataFileError, match="no column of text among label, words"):
        read_documents(tmp_path / "c.tsv")
    (tmp_path / "b.tsv").write_text('pos\t"a b\nneg\tc\n')
    assert read_documents(tmp_path / "a.tsv").texts == ['"a b']
    documents = read_documents(tmp_path / "b.tsv")
    assert documents.texts == ['"a b', "c"] and documents.labels == ["pos", "neg"]


def test_json_lines(tmp_path):
    (tmp_path / "d.jsonl").write_text('{"text": "a\\u2028b", "label": 1}\n\n{"label": 0, "text": "c"}\n')
    documents = read_documents(tmp_path / "d.jsonl")
    assert documents.texts == ["a\u2028b", "c"] and documents.labels == [1, 0]


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
        ("d.jsonl", b'{"text": "a", "label": 1}\n{"text": \n', r"d.jsonl, line 2: not JSON: .* \(column 10\)"),
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
            b'{"text": "a", "label": {"x": 1}}',
            r"line 1: the label is dict, \{'x': 1\}; expected a string or a number",
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
    assert read_documents(tmp_path / "d.json").labels == [1, 2]


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


def test_numbers_stay_numbers(tmp_path):
    (tmp_path / "a.csv").write_text("text,label\na,1\nb,10\nc,-2\n")
    assert read_documents(tmp_path / "a.csv").labels == [1, 10, -2]
    (tmp_path / "b.csv").write_text("text,label\na,01\nb,2\n")
    assert read_documents(tmp_path / "b.csv").labels == ["01", "2"], "codes are no numbers"
    (tmp_path / "c.csv").write_text("text,label\na,1\nb,x\n")
    assert read_documents(tmp_path / "c.csv").labels == ["1", "x"]


def test_many_labels(tmp_path):
    (tmp_path / "d.csv").write_text("text,tags\na,red; blue\nb,\nc,red\n")
    assert read_documents(tmp_path / "d.csv", separator=";").labels == [["red", "blue"], [], ["red"]]
    (tmp_path / "d.jsonl").write_text('{"text": "a", "labels": ["x", 2]}\n{"text": "b", "labels": []}\n')
    assert read_documents(tmp_path / "d.jsonl").labels == [["x", "2"], []]
    (tmp_path / "e.csv").write_text("text,red,blue\na,1,0\nb,0,yes\nc,,\n")
    assert read_documents(tmp_path / "e.csv", label=["red", "blue"]).labels == [["red"], ["blue"], []]
    with pytest.raises(DataFileError, match="line 2: column 'text' is one of several labels: expected 0 or 1"):
        read_documents(tmp_path / "e.csv", label=["red", "text"])


def test_several_files_by_a_pattern(tmp_path):
    (tmp_path / "a-1.csv").write_text("text,label\na,1\n")
    (tmp_path / "a-2.csv").write_text("text,label\nb,x\n")
    documents = read_documents(str(tmp_path / "a-*.csv"))
    assert documents.texts == ["a", "b"] and documents.labels == ["1", "x"]
    with pytest.raises(DataFileError, match="no file has a name like that"):
        read_documents(str(tmp_path / "b-*.csv"))


def test_all_columns_are_kept(tmp_path):
    (tmp_path / "d.csv").write_text("id,text,label\n7,good,x\n8,bad,y\n")
    rows = read_rows(tmp_path / "d.csv")
    assert rows.names == ["id", "text", "label"] and rows.text_at == 1
    assert rows.cells == [["7", "good", "x"], ["8", "bad", "y"]]
    (tmp_path / "d.jsonl").write_text('{"id": 7, "text": "a"}\n{"text": "b"}\n')
    assert read_rows(tmp_path / "d.jsonl").cells == [[7, "a"], [None, "b"]]


def test_excel(tmp_path):
    openpyxl = pytest.importorskip("openpyxl", reason="needs the extra 'excel'")
    book = openpyxl.Workbook()
    for row in (["text", "label"], ["good", 1], ["bad", 2], [None, None], [2024, 2]):
        book.active.append(row)
    book.save(tmp_path / "d.xlsx")
    documents = read_documents(tmp_path / "d.xlsx")
    assert documents.texts == ["good", "bad", "2024"] and documents.labels == [1, 2, 2]
    (tmp_path / "e.xlsx").write_bytes(b"nonsense")
    with pytest.raises(DataFileError, match="not an Excel file"):
        read_documents(tmp_path / "e.xlsx")


def sheet(path, rows, dimension=""):
    """An Excel file with this XML of rows."""
    kinds = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    relations = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    files = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types">'
        f'<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{kinds}.sheet.main+xml"/>'
        f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{kinds}.worksheet+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="r1" '
        f'Type="{relations}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{relations}"><sheets>'
        '<sheet name="a" sheetId="1" r:id="r1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="r1" '
        f'Type="{relations}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{main}">{dimension}<sheetData>{rows}</sheetData></worksheet>',
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def excel_row(number, *cells):
    inside = "".join(
        f'<c r="{column}{number}" t="inlineStr"><is><t>{cell}</t></is></c>'
        for column, cell in zip(("A", "B"), cells, strict=True)
    )
    return f'<row r="{number}">{inside}</row>'


def test_a_sheet_may_lie_about_its_size(tmp_path):
    pytest.importorskip("openpyxl", reason="needs the extra 'excel'")
    rows = excel_row(1, "text", "label") + "".join(excel_row(k, f"film {k}", "ab"[k % 2]) for k in range(2, 32))
    for dimension in ('<dimension ref="A1:B5"/>', '<dimension ref="A1:XFD1048576"/>', ""):
        assert len(read_documents(sheet(tmp_path / "d.xlsx", rows, dimension))) == 30
    far = rows + excel_row(1_048_576, "the last", "a")
    assert len(read_documents(sheet(tmp_path / "far.xlsx", far, '<dimension ref="A1:XFD1048576"/>'))) == 31


def test_a_small_sheet_cannot_take_all_memory(tmp_path, monkeypatch):
    pytest.importorskip("openpyxl", reason="needs the extra 'excel'")
    rows = excel_row(1, "text", "label")
    with pytest.raises(DataFileError, match="a row beyond 1,048,576"):
        read_documents(sheet(tmp_path / "row.xlsx", rows + excel_row(999_999_999, "far", "a")))
    monkeypatch.setattr(archives, "_FREE", 1 << 20)  # the ratio counts from 1 MiB on
    large = rows + "".join(excel_row(k, "a" * 1_000_000, "a") for k in range(2, 12))
    with pytest.raises(DataFileError, match="too much for a file of its size"):
        read_documents(sheet(tmp_path / "ratio.xlsx", large))


def test_corrections_replace_labels_and_add_documents():
    documents = Documents(["a plum", "a saw"], ["tool", "tool"])
    corrected = documents.corrected(Documents(["a plum", "a pear"], ["fruit", "fruit"]), new_classes=True)
    assert corrected.texts == ["a plum", "a saw", "a pear"] and corrected.labels == ["fruit", "tool", "fruit"]
    with pytest.raises(InputError, match="labels that DATA does not have: fruit"):
        documents.corrected(Documents(["a plum"], ["fruit"]))


def test_examples_are_some_documents_of_each_class():
    documents = Documents(["a", "b" * 160, " ", "c"], ["x", "x", "y", "y"])
    assert documents.examples(1) == [("x", "b" * 160), ("y", "c")]
