import pytest

from mpad.files.safe_json import parse_json, read_json


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", r"\(column 2"),
        ("{\n", "line 2, column 1"),
        ("[" * 10**6, "thousands deep"),
        ("1" * 5000, "Exceeds the limit"),
    ],
)
def test_whatever_python_refuses_is_one_error(text, said):
    with pytest.raises(LookupError, match=said):
        parse_json(text, LookupError)


def test_bytes_are_utf8():
    assert read_json(b'\xef\xbb\xbf["x"]', LookupError) == ["x"]
    with pytest.raises(LookupError, match="byte 0xff at 2 is not UTF-8"):
        read_json(b'["\xff"]', LookupError)
