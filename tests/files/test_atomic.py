import errno
import multiprocessing
import os
import signal
import time

import pytest

from mpad.errors import StoreError
from mpad.files import atomic
from mpad.files.atomic import check_destination, write_file, write_folder

OWN = frozenset({"mark", "data"})


def ours(folder):
    return OWN if (folder / "mark").exists() else None


def write(folder, text):
    with write_folder(folder, ours) as fresh:
        (fresh / "mark").write_text("")
        (fresh / "data").write_text(text)


def test_it_appears_whole_and_replaces_its_own(tmp_path):
    write(tmp_path / "m", "one")
    write(tmp_path / "m", "two")
    assert (tmp_path / "m" / "data").read_text() == "two"
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


@pytest.mark.parametrize("exchange", [True, False])
def test_a_kill_leaves_the_old_one_or_the_new_one(tmp_path, monkeypatch, exchange):
    """The writer dies just after each of its renames; without the exchange there is a moment with none."""
    if not exchange:
        monkeypatch.setattr(atomic, "_exchange", lambda one, other: False)
    write(tmp_path / "m", "one")
    real = atomic._remove

    def die(folder, names):
        os.kill(os.getpid(), signal.SIGKILL)

    child = os.fork()
    if not child:
        atomic._remove = die
        write(tmp_path / "m", "two")
        os._exit(1)
    os.waitpid(child, 0)
    assert atomic._remove is real and (tmp_path / "m" / "data").read_text() == "two"
    assert len(list(tmp_path.iterdir())) == 2  # what was killed leaves the old one beside
    write(tmp_path / "m", "three")
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_a_failing_writer_changes_nothing(tmp_path):
    write(tmp_path / "m", "one")
    with pytest.raises(ZeroDivisionError), write_folder(tmp_path / "m", ours) as fresh:
        (fresh / "mark").write_text("")
        raise ZeroDivisionError
    assert (tmp_path / "m" / "data").read_text() == "one" and [path.name for path in tmp_path.iterdir()] == ["m"]


def test_a_full_disk_is_told(tmp_path):
    with pytest.raises(StoreError, match="cannot be written: the disk is full"), write_folder(tmp_path / "m", ours):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert not list(tmp_path.iterdir())


def test_files_of_strangers_stay(tmp_path):
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "precious").write_text("x")
    with pytest.raises(StoreError, match="is there already and is not a model"):
        write(tmp_path / "p", "one")
    (tmp_path / "p" / "mark").write_text("")
    with pytest.raises(StoreError, match=r"holds more than a model \(precious\)"):
        write(tmp_path / "p", "one")
    assert (tmp_path / "p" / "precious").read_text() == "x"


def test_a_file_that_comes_in_while_writing_stays(tmp_path):
    write(tmp_path / "m", "one")
    with pytest.raises(StoreError, match="precious"), write_folder(tmp_path / "m", ours) as fresh:
        (fresh / "mark").write_text("")
        (tmp_path / "m" / "precious").write_text("x")
    assert (tmp_path / "m" / "precious").read_text() == "x" and (tmp_path / "m" / "data").read_text() == "one"


def test_places_that_cannot_be_written_are_refused_before(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="is a file, not a folder"):
        check_destination(tmp_path / "file", ours)
    with pytest.raises(StoreError, match="cannot be written"):
        check_destination(tmp_path / "file" / "below", ours)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for name in (".", "..", str(tmp_path)):
        with pytest.raises(StoreError, match="is not a model|the folder you are in"):
            check_destination(atomic.Path(name), ours)


def test_a_link_is_followed(tmp_path):
    write(tmp_path / "real", "one")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write(tmp_path / "link", "two")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real" / "data").read_text() == "two"


def _write_often(folder, text, until):
    while time.time() < until:
        write(folder, text)


def test_writers_take_turns_and_readers_always_find_it(tmp_path):
    write(tmp_path / "m", "a" * 1000)
    until = time.time() + 1.5
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_write_often, args=(tmp_path / "m", c * 1000, until)) for c in "bc"]
    for writer in writers:
        writer.start()
    reads = 0
    while time.time() < until:
        assert (tmp_path / "m").is_dir()
        reads += 1
    for writer in writers:
        writer.join(30)
        assert writer.exitcode == 0
    assert reads > 100 and len(set((tmp_path / "m" / "data").read_text())) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_a_writer_at_work_is_no_leftover(tmp_path):
    with write_folder(tmp_path / "m", ours) as fresh:
        (fresh / "mark").write_text("")
        write(tmp_path / "m", "other")
        assert fresh.is_dir()


def test_a_file_is_replaced_whole(tmp_path, monkeypatch):
    write_file(tmp_path / "f", b"one")

    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(atomic.os, "fsync", full)
    with pytest.raises(StoreError, match="the disk is full"):
        write_file(tmp_path / "f", b"two")
    assert (tmp_path / "f").read_bytes() == b"one" and [path.name for path in tmp_path.iterdir()] == ["f"]
