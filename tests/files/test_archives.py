import gzip
import io
import lzma
import subprocess
import sys
import tarfile
import zipfile
from pathlib import PurePosixPath

import pytest

from mpad.errors import DataFileError
from mpad.files import archives
from mpad.files.archives import Limits, TooLarge, archive_files, open_stream, read_unpacked

SMALL = Limits(total=1000, ratio=200)


@pytest.fixture(autouse=True)
def no_free_bytes(monkeypatch):
    monkeypatch.setattr(archives, "_FREE", 100)


def packed(tmp_path, kind, content):
    path = tmp_path / f"d.txt{kind}"
    if kind == ".gz":
        path.write_bytes(gzip.compress(content))
    elif kind == ".xz":
        path.write_bytes(lzma.compress(content))
    else:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("d.txt", content)
    return path


KINDS = pytest.mark.parametrize("kind", [".gz", ".xz", ".zip"])


@KINDS
def test_what_was_packed_comes_out(tmp_path, kind):
    assert read_unpacked(packed(tmp_path, kind, b"text " * 30), SMALL) == b"text " * 30


@KINDS
def test_a_bomb_is_refused_by_its_ratio(tmp_path, kind):
    path = packed(tmp_path, kind, b"\0" * (1 << 20))
    with pytest.raises(TooLarge, match="too much for a file of its size"):
        read_unpacked(path, Limits(ratio=20))


@KINDS
def test_a_large_one_is_refused_by_its_total(tmp_path, kind):
    path = packed(tmp_path, kind, bytes(range(256)) * 8)
    with pytest.raises(TooLarge, match="more than 1,000 bytes"):
        read_unpacked(path, SMALL)


def test_a_stream_has_no_total_but_a_ratio(tmp_path):
    path = packed(tmp_path, ".gz", bytes(range(256)) * 8)
    with open_stream(path, SMALL) as stream:
        assert len(stream.read(5000)) == 2048
    bomb = packed(tmp_path, ".gz", b"\0" * (1 << 20))
    with open_stream(bomb, Limits(ratio=20)) as stream, pytest.raises(TooLarge):
        while stream.read(1000):
            pass


def test_encrypted_and_odd_zips_are_told(tmp_path):
    path = packed(tmp_path, ".zip", b"text")
    data = bytearray(path.read_bytes())
    central = data.index(b"PK\x01\x02")
    data[6] |= 1  # the flag "encrypted", in both headers
    data[central + 8] |= 1
    path.write_bytes(data)
    with pytest.raises(DataFileError, match="it is encrypted; unpack it with its password"):
        read_unpacked(path)
    data[6], data[central + 8] = data[6] & ~1, data[central + 8] & ~1
    data[8], data[central + 10] = 99, 99  # an unknown method
    path.write_bytes(data)
    with pytest.raises(DataFileError, match="its compression method is none that is read here"):
        read_unpacked(path)


def test_only_regular_files_are_read():
    with pytest.raises(DataFileError, match="not a regular file"):
        read_unpacked(archives.Path("/dev/zero"))


def test_a_tar_bomb_is_refused_before_it_is_read_through(tmp_path):
    path = tmp_path / "d.tar.xz"
    with tarfile.open(path, "w:xz") as archive:
        for name in ("other", "wanted"):
            member = tarfile.TarInfo(name)
            member.size = 1 << 20
            archive.addfile(member, io.BytesIO(b"\0" * member.size))
    files = archive_files(path, lambda inside: inside == PurePosixPath("wanted"), Limits(ratio=20))
    with pytest.raises(TooLarge):
        list(files)
    (found,) = archive_files(path, lambda inside: inside == PurePosixPath("wanted"), Limits(ratio=10**6))
    assert len(found[1]) == 1 << 20


def test_a_zip_of_many_files_shares_one_total(tmp_path):
    path = tmp_path / "d.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(4):
            archive.writestr(f"{number}.txt", b"x" * 400)
    with pytest.raises(TooLarge):
        list(archive_files(path, lambda inside: True, SMALL))


def peak_megabytes(code):
    """Peak memory of a process of its own that runs this code."""
    report = "\nprint(int(open('/proc/self/status').read().partition('VmHWM:')[2].split()[0]) // 1024)"
    done = subprocess.run([sys.executable, "-c", code + report], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_bomb_takes_no_memory(tmp_path, method):
    path = tmp_path / "d.csv.zip"
    with zipfile.ZipFile(path, "w", method) as archive, archive.open("d.csv", "w") as file:
        for _ in range(400):
            file.write(b"\0" * (1 << 20))
    code = f"""
from pathlib import Path
from mpad.errors import DataFileError
from mpad.files.archives import read_unpacked
try:
    read_unpacked(Path({str(path)!r}))
    raise SystemExit("it was taken")
except DataFileError:
    pass"""
    assert peak_megabytes(code) < 300


def test_headers_of_a_tar_count_too(tmp_path):
    header = tarfile.TarInfo("pax")
    header.type, header.size = tarfile.XHDTYPE, 400 << 20
    path = tmp_path / "d.tar.xz"
    with lzma.open(path, "wb", preset=0) as file:
        file.write(header.tobuf())
        for _ in range(400):
            file.write(b"\0" * (1 << 20))
    code = f"""
from pathlib import Path
from mpad.errors import DataFileError
from mpad.files.archives import archive_files
try:
    list(archive_files(Path({str(path)!r}), lambda inside: True) or [])
except DataFileError:
    pass"""
    assert peak_megabytes(code) < 300


def test_a_packed_tar_is_read(tmp_path):
    for mode in ("w", "w:gz", "w:xz", "w:bz2"):
        with tarfile.open(tmp_path / "d.tar", mode) as archive:
            member = tarfile.TarInfo("a/b.txt")
            member.size = 4
            archive.addfile(member, io.BytesIO(b"text"))
        assert list(archive_files(tmp_path / "d.tar", lambda inside: True)) == [(PurePosixPath("a/b.txt"), b"text")]
    (tmp_path / "plain").write_text("no archive")
    assert archive_files(tmp_path / "plain", lambda inside: True) is None
