import pytest

from mpad.errors import DataFileError
from mpad.files.encoding import decode, split_lines


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_marks_are_followed(encoding):
    assert decode("d", "schön\n".encode(encoding)) == "schön\n"


@pytest.mark.parametrize(("order", "said"), [("le", "UTF-16LE"), ("be", "UTF-16BE")])
def test_utf16_without_a_mark_gets_its_own_cure(order, said):
    with pytest.raises(DataFileError, match=f"iconv -f {said} -t UTF-8"):
        decode("d", "text,label\na,x\n".encode(f"utf-16-{order}"))


def test_latin1_is_told_by_line():
    with pytest.raises(DataFileError, match=r"d, line 2: byte 0xf6 is not UTF-8; convert the file \(iconv -f LATIN1"):
        decode("d", b"ok\nsch\xf6n\n")


def test_lines():
    assert split_lines("a\r\n\nb") == ["a", "", "b"] and split_lines("a\n") == ["a"]
