import gzip
import resource

import numpy as np
import pytest

from mpad.errors import VectorFileError
from mpad.text.vector_files import read_rows

WORDS = ["the", "naïve", "fox"]
ROWS = np.arange(12, dtype=np.float32).reshape(3, 4) / 8


def word2vec_binary(newline: bytes = b"\n") -> bytes:
    body = b"".join(w.encode() + b" " + row.tobytes() + newline for w, row in zip(WORDS, ROWS, strict=True))
    return b"3 4\n" + body


def text(header: bool) -> bytes:
    lines = [f"{w} " + " ".join(map(str, row)) for w, row in zip(WORDS, ROWS.tolist(), strict=True)]
    return ("3 4\n" * header + "\n".join(lines) + "\n").encode()


def read(path, wanted=lambda word: True):
    return dict(read_rows(path, wanted))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("v.bin", word2vec_binary()),
        ("v.bin", word2vec_binary(newline=b"")),
        ("v.txt", text(header=True)),
        ("v.vec", text(header=True)),
        ("glove.txt", text(header=False)),
        ("v.bin.gz", gzip.compress(word2vec_binary(), mtime=0)),
        ("glove.txt.gz", gzip.compress(text(header=False), mtime=0)),
    ],
)
def test_formats(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    found = read(path)
    assert list(found) == WORDS
    assert np.array_equal(np.stack(list(found.values())), ROWS)
    assert list(read(path, wanted=lambda word: word == "fox")) == ["fox"]


def test_npz_plain_and_scaled(tmp_path):
    np.savez(tmp_path / "plain.npz", words=np.array(WORDS), vectors=ROWS)
    np.savez(tmp_path / "scaled.npz", words=np.array(WORDS), rows=(ROWS * 8).astype(np.int8), scale=np.full(3, 0.125))
    for name in ("plain.npz", "scaled.npz"):
        found = read(tmp_path / name)
        assert np.allclose(np.stack(list(found.values())), ROWS)


def test_glove_words_with_spaces(tmp_path):
    path = tmp_path / "glove.txt"
    path.write_text("a 1 2\n. . . 3 4\n")
    assert list(read(path)) == ["a", ". . ."]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("cut.bin", word2vec_binary()[:40], r"cut.bin, byte 40: the file ends after 1 of the 3 words"),
        ("cut.txt", text(True)[:40], r"cut.txt, line 3: expected a word and 4 numbers, found 1"),
        ("short.txt", b"5 2\na 1 2\nb 1 2\n", r"line 4: the file ends after 2 of the 5 words"),
        ("first.txt", b"4 3\ngreat 1 0\nbad 0 1 0\n", r"first.txt, line 2: expected a word and 3 numbers, found 2"),
        ("wrong.txt", b"a 1 2\nb 1 x\n", r"wrong.txt, line 2: not a number"),
        ("prose.txt", b"this is no vector file\n", r"prose.txt, line 1: expected 'count width'"),
        ("cut.gz", gzip.compress(text(True), mtime=0)[:-9], "truncated"),
        ("bad.npz", b"PK not a zip", "expected an .npz file"),
        ("zero.bin", b"3 0\n", "width of the vectors is 0"),
        ("huge.bin", b"2 1\n" + b"\x01" * 100_000, r"byte 4: no space ends the word"),
    ],
)
def test_damaged_files_are_told_by_place(tmp_path, name, content, said):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(VectorFileError, match=said):
        read(path)


def test_no_such_file(tmp_path):
    with pytest.raises(VectorFileError, match="no such file"):
        read(tmp_path / "nothing.bin")


def test_large_files_are_streamed(tmp_path):
    """120 MB of vectors must not take 120 MB of memory: the same code reads 3.6 GB."""
    path, width, count = tmp_path / "large.bin", 300, 100_000
    row = np.ones(width, "<f4").tobytes()
    with path.open("wb") as file:
        file.write(f"{count} {width}\n".encode())
        file.writelines(f"w{number} ".encode() + row + b"\n" for number in range(count))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = read(path, wanted=lambda word: word in {"w0", "w99999"})
    assert list(found) == ["w0", "w99999"]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60_000  # kilobytes
