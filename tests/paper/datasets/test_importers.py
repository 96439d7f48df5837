"""Each importer on a tiny distribution in the original format, written here."""

import tarfile
import zipfile

import pytest

from mpad.errors import DataFileError
from mpad.paper.datasets.catalogue import PAPER
from mpad.paper.datasets.importers import IMPORTERS


def write(folder, files):
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def rows(documents):
    return list(zip(documents.labels, documents.texts, strict=True))


def test_every_dataset_of_the_paper_has_an_importer():
    assert tuple(IMPORTERS) == PAPER


def sgml(split, topics, title, body, used="YES"):
    inside = "".join(f"<D>{topic}</D>" for topic in topics)
    return (
        f'<REUTERS TOPICS="{used}" LEWISSPLIT="{split}" CGISPLIT="TRAINING-SET" OLDID="1" NEWID="1">\n'
        f"<DATE>26-FEB-1987</DATE>\n<TOPICS>{inside}</TOPICS>\n<PLACES><D>usa</D></PLACES>\n"
        f"<TEXT>&#2;\n<TITLE>{title}</TITLE>\n<BODY>{body}\n Reuter\n&#3;</BODY></TEXT>\n</REUTERS>\n"
    )


def test_reuters(tmp_path):
    big = ("earn", "acq", "money-fx", "crude", "trade", "interest", "ship")
    documents = [sgml(part, [topic], topic.upper(), "x") for topic in big for part in ("TRAIN", "TRAIN", "TEST")]
    documents += [
        sgml("TRAIN", ["grain"], "WHEAT UP 3.5 PCT &lt;GRN>", "It's &amp; rose"),
        sgml("TEST", ["grain"], "CORN", "fell"),
        # wheat is larger than sugar by all its documents, but never stands alone
        *[sgml("TRAIN", ["grain", "wheat"], "BOTH", "x")] * 9,
        sgml("TRAIN", ["sugar"], "SWEET", "x"),
        sgml("TEST", ["sugar"], "SWEET", "x"),
        sgml("TRAIN", [], "NONE", "x"),
        sgml("TRAIN", ["earn"], "UNUSED", "x", used="NO"),
        sgml("NOT-USED", ["earn"], "UNUSED", "x"),
    ]
    head = '<!DOCTYPE lewis SYSTEM "lewis.dtd">\n'
    write(tmp_path, {"reut2-000.sgm": head + "".join(documents[:9]), "reut2-001.sgm": head + "".join(documents[9:])})
    parts = IMPORTERS["reuters"](tmp_path)
    assert set(parts["train"].labels) == {*big, "grain"} and len(parts["train"]) == 15 and len(parts["test"]) == 8
    assert ("grain", "wheat up pct grn it s rose reuter") in rows(parts["train"])


def test_reuters_says_what_it_expected(tmp_path):
    with pytest.raises(DataFileError, match="expected files reut2-000.sgm"):
        IMPORTERS["reuters"](tmp_path)
    write(tmp_path, {"reut2-000.sgm": "<!DOCTYPE lewis>\n<REUTERS>\n<BODY>x</BODY>\n</REUTERS>"})
    with pytest.raises(DataFileError, match=r"reut2-000.sgm, line 2: expected <REUTERS TOPICS"):
        IMPORTERS["reuters"](tmp_path)


IMDB = {
    "aclImdb/train/pos/10_9.txt": "Fine<br />film",
    "aclImdb/train/pos/9_7.txt": "Good",
    "aclImdb/train/neg/0_1.txt": "Bad",
    "aclImdb/train/unsup/0_0.txt": "?",
    "aclImdb/test/pos/0_10.txt": "Great",
    "aclImdb/test/neg/0_2.txt": "Awful",
    "aclImdb/README": "x",
}


@pytest.mark.parametrize("form", ["folder", "tar.gz", "zip"])
def test_imdb_from_a_folder_or_an_archive(tmp_path, form):
    source = write(tmp_path / "in", IMDB)
    if form == "tar.gz":
        with tarfile.open(tmp_path / "aclImdb_v1.tar.gz", "w:gz") as archive:
            archive.add(source / "aclImdb", "aclImdb")
        source = tmp_path / "aclImdb_v1.tar.gz"
    elif form == "zip":
        with zipfile.ZipFile(tmp_path / "imdb.zip", "w") as archive:
            for name, content in IMDB.items():
                archive.writestr(name, content)
        source = tmp_path / "imdb.zip"
    parts = IMPORTERS["imdb"](source)
    assert rows(parts["train"]) == [("neg", "Bad"), ("pos", "Good"), ("pos", "Fine<br />film")]  # by number
    assert rows(parts["test"]) == [("neg", "Awful"), ("pos", "Great")]


def test_a_cut_archive_is_told(tmp_path):
    source = write(tmp_path / "in", {"aclImdb/train/pos/1_9.txt": bytes(range(256)) * 400})
    with tarfile.open(tmp_path / "whole.tar.gz", "w:gz") as archive:
        archive.add(source / "aclImdb", "aclImdb")
    whole = (tmp_path / "whole.tar.gz").read_bytes()
    (tmp_path / "cut.tar.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataFileError, match="cannot be unpacked"):
        IMPORTERS["imdb"](tmp_path / "cut.tar.gz")


def test_a_damaged_archive_is_never_read_in_part(tmp_path):
    """Python's tarfile takes a header that it cannot read for the end of the archive."""
    source = write(tmp_path / "in", {f"aclImdb/train/pos/{k}_9.txt": f"film {k}" for k in range(40)})
    with tarfile.open(tmp_path / "films.tar", "w") as archive:
        archive.add(source / "aclImdb", "aclImdb")
    data = bytearray((tmp_path / "films.tar").read_bytes())
    middle = len(data) // 2 // 512 * 512
    data[middle : middle + 1024] = b"x" * 1024
    (tmp_path / "films.tar").write_bytes(data)
    with pytest.raises(DataFileError, match="cannot be unpacked"):
        IMPORTERS["imdb"](tmp_path / "films.tar")
    with zipfile.ZipFile(tmp_path / "films.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("train/pos/1_9.txt", "film " * 500)
    data = bytearray((tmp_path / "films.zip").read_bytes())
    data[60:70] = b"xxxxxxxxxx"
    (tmp_path / "films.zip").write_bytes(data)
    with pytest.raises(DataFileError, match="cannot be unpacked"):
        IMPORTERS["imdb"](tmp_path / "films.zip")


def test_an_unclosed_document_and_a_second_tree_are_told(tmp_path):
    unclosed = sgml("TRAIN", ["earn"], "X", "x") + sgml("TEST", ["earn"], "X", "x").removesuffix("</REUTERS>\n")
    write(tmp_path, {"reut2-000.sgm": unclosed})
    with pytest.raises(DataFileError, match="to be closed by </REUTERS>"):
        IMPORTERS["reuters"](tmp_path)
    write(tmp_path, {**TREES, "trees/dev.txt": "(2 (2 A) (2 film)) (3 (2 It) (3 works))\n"})
    with pytest.raises(DataFileError, match="dev.txt, line 1: expected one tree a line"):
        IMPORTERS["sst1"](tmp_path / "trees")


def test_a_byte_order_mark_is_no_part_of_a_label(tmp_path):
    write(tmp_path, {"train_5500.label": b"\xef\xbb\xbfDESC:x What ?\n", "TREC_10.label": "HUM:x Who ?\n"})
    assert IMPORTERS["trec"](tmp_path)["train"].labels == ["DESC"]


def test_bbcsport(tmp_path):
    sports = ("athletics", "cricket", "football", "rugby", "tennis")
    source = write(
        tmp_path, {f"bbcsport/{sport}/001.txt": f"{sport} title\n\nBody \xa3.".encode("latin-1") for sport in sports}
    )
    assert rows(IMPORTERS["bbcsport"](source)["all"])[0] == ("athletics", "athletics title\n\nBody £.")
    (source / "bbcsport/tennis/001.txt").unlink()
    with pytest.raises(DataFileError, match="there is no tennis"):
        IMPORTERS["bbcsport"](source)


def test_polarity_drops_what_is_no_utf8(tmp_path):
    write(tmp_path, {"rt-polarity.pos": b"a caf\xe9 film .\ngood\n", "rt-polarity.neg": "bad\n"})
    assert rows(IMPORTERS["polarity"](tmp_path)["all"]) == [("neg", "bad"), ("pos", "a caf film ."), ("pos", "good")]
    (tmp_path / "rt-polarity.neg").unlink()
    with pytest.raises(DataFileError, match="there is no rt-polarity.neg"):
        IMPORTERS["polarity"](tmp_path)


def test_subjectivity(tmp_path):
    write(tmp_path, {"quote.tok.gt9.5000": "i liked it .\n", "plot.tok.gt9.5000": "a man goes west .\n"})
    assert rows(IMPORTERS["subjectivity"](tmp_path)["all"]) == [
        ("objective", "a man goes west ."),
        ("subjective", "i liked it ."),
    ]


def test_mpqa_in_both_forms(tmp_path):
    one = write(tmp_path / "one", {"mpqa.pos": "well done\n", "mpqa.neg": "failing to support\n"})
    other = write(tmp_path / "other", {"mpqa.all": "1 well done\n0 failing to support\n"})
    assert sorted(rows(IMPORTERS["mpqa"](one)["all"])) == sorted(rows(IMPORTERS["mpqa"](other / "mpqa.all")["all"]))
    write(other, {"mpqa.all": "1 well done\npos bad\n"})
    with pytest.raises(DataFileError, match=r"mpqa.all, line 2: expected '0 phrase' or '1 phrase', found 'pos bad'"):
        IMPORTERS["mpqa"](other)


def test_trec_keeps_the_coarse_label(tmp_path):
    write(
        tmp_path,
        {
            "train_5500.label": b"DESC:manner How did serfdom develop ?\nENTY:cremat What is Tagliabue \xf0 ?\n",
            "TREC_10.label": "NUM:dist How far is it ?\n",
        },
    )
    parts = IMPORTERS["trec"](tmp_path)
    assert rows(parts["train"]) == [("DESC", "How did serfdom develop ?"), ("ENTY", "What is Tagliabue ð ?")]
    assert rows(parts["test"]) == [("NUM", "How far is it ?")]
    write(tmp_path, {"TREC_10.label": "NUM:dist How far ?\nHow far is it ?\n"})
    with pytest.raises(DataFileError, match=r"TREC_10.label, line 2: expected 'LABEL:fine question'"):
        IMPORTERS["trec"](tmp_path)


def test_snippets(tmp_path):
    write(tmp_path, {"train.txt": "bank rate loan business\n", "test.txt": "goal match sports\n"})
    parts = IMPORTERS["snippets"](tmp_path)
    assert rows(parts["train"]) == [("business", "bank rate loan")] and rows(parts["test"]) == [
        ("sports", "goal match")
    ]
    write(tmp_path, {"test.txt": "goal match sports\nalone\n"})
    with pytest.raises(DataFileError, match="test.txt, line 2: expected words and a label"):
        IMPORTERS["snippets"](tmp_path)


TREES = {
    "trees/train.txt": "(3 (2 It) (4 (2 's) (3 Good)))\n(1 (2 it) (0 (1 bad) (2 film)))\n",
    "trees/dev.txt": "(2 (2 A) (2 film))\n(4 (2 Very) (4 good))\n",
    "trees/test.txt": "(0 (1 Bad) (2 -LRB-))\n",
}


def test_treebank_phrases(tmp_path):
    write(tmp_path, TREES)
    parts = IMPORTERS["sst1"](tmp_path)
    assert rows(parts["train"]) == [
        ("2", "It"),
        ("2", "'s"),
        ("3", "Good"),
        ("4", "'s Good"),
        ("3", "It 's Good"),
        ("1", "bad"),  # "it" was there already, whatever its case
        ("2", "film"),
        ("0", "bad film"),
        ("1", "it bad film"),
    ]
    assert rows(parts["dev"]) == [("2", "A film"), ("4", "Very good")] and rows(parts["test"]) == [("0", "Bad -LRB-")]
    binary = IMPORTERS["sst2"](tmp_path)
    assert binary["train"].labels == ["1", "1", "1", "0", "0", "0"] and len(binary["dev"]) == 1


@pytest.mark.parametrize(
    ("tree", "said"),
    [("(3 (2 It) (7 works))", "a grade from 0 to 4"), ("(3 (2 It)", r"as many '\)'"), ("It works", "a tree such as")],
)
def test_a_broken_tree_is_told_by_its_line(tmp_path, tree, said):
    write(tmp_path, {**TREES, "trees/dev.txt": f"(2 (2 A) (2 film))\n{tree}\n"})
    with pytest.raises(DataFileError, match=f"dev.txt, line 2: expected {said}"):
        IMPORTERS["sst1"](tmp_path)


def test_yelp_makes_rare_words_unknown(tmp_path):
    line = "u1\t\tp1\t\t{}\t\tgood food . <sssss> i 'll be back !\n"
    write(
        tmp_path,
        {
            "yelp-2013-train.txt.ss": line.format(5) * 5,
            "yelp-2013-dev.txt.ss": line.format(4),
            "yelp-2013-test.txt.ss": "u\t\tp\t\t1\t\tgood wok <sssss> back ?\n",
        },
    )
    parts = IMPORTERS["yelp2013"](tmp_path)
    assert rows(parts["dev"]) == [("4", "good food . i 'll be back ! .")]
    assert rows(parts["test"]) == [("1", "good UNK . back UNK .")]
    write(tmp_path, {"yelp-2013-test.txt.ss": "u\tp\t1\tgood\n"})
    with pytest.raises(DataFileError, match="test.txt.ss, line 1: expected user, product, stars"):
        IMPORTERS["yelp2013"](tmp_path)
