"""Labels on disk: every label is appended to a journal at once, and a table of the current labels is kept next to it.

`labels.csv` holds the current labels, for people and for `mpad fit`. `labels.csv.log` is the journal: a line of JSON
per label, never changed, flushed to the disk before the browser gets its response. Whatever ends the process, the
journal has every label. A table that somebody edited meanwhile is read again before it is replaced: the edits are
labels like others. A second process on the same file is refused.
"""

import csv
import fcntl
import io
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from mpad.errors import DataFileError
from mpad.files.atomic import write_file

_COLUMNS = ("id", "text", "label")


class Journal:
    """Current labels by text, and their file."""

    def __init__(self, table: Path) -> None:
        self._table, self._path = table, table.with_name(f"{table.name}.log")
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self._path.open("ab")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.close()
            raise DataFileError(f"{self._path}: another process is labeling into this file") from None
        self.labels: dict[str, str] = {}
        self._ids: dict[str, str] = {}
        try:
            for record in self._records():
                self._apply(record)
            self._end_torn_line()
            self._written: bytes | None = self._content() if self.labels else None
            self._adopt_edits()
            self._write_table()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def set(self, text: str, label: str | None, identity: str = "") -> None:
        """Give a text a label, or take its label away (None); it is on disk when this returns."""
        self._adopt_edits()
        self._append({"id": identity, "text": text, "label": label})
        self._write_table()

    def close(self) -> None:
        """Release the file."""
        self._file.close()

    def _append(self, record: dict[str, Any]) -> None:
        line = json.dumps({**record, "at": round(time.time(), 3)}) + "\n"
        self._file.write(line.encode())
        self._file.flush()
        os.fsync(self._file.fileno())
        self._apply(record)

    def _apply(self, record: dict[str, Any]) -> None:
        text, label = record["text"], record["label"]
        self.labels.pop(text, None)
        if label is not None:
            self.labels[text] = label
            self._ids[text] = record.get("id") or self._ids.get(text, "")

    def _records(self) -> Iterator[dict[str, Any]]:
        lines = self._path.read_bytes().split(b"\n")
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
                valid = isinstance(record["text"], str) and isinstance(record["label"], str | None)
            except (ValueError, KeyError, TypeError):
                valid = False
            if valid:
                yield record
            elif number < len(lines):  # the last line may be torn by a crash
                raise DataFileError(f"{self._path}, line {number}: expected a label as JSON with text and label")

    def _end_torn_line(self) -> None:
        """Begin a new line, if a crash has left one without its end."""
        content = self._path.read_bytes()
        if content and not content.endswith(b"\n"):
            self._file.write(b"\n")
            self._file.flush()

    def _content(self) -> bytes:
        sink = io.StringIO(newline="")
        writer = csv.writer(sink, lineterminator="\n")
        writer.writerow(_COLUMNS)
        writer.writerows((self._ids.get(text, ""), text, label) for text, label in self.labels.items())
        return sink.getvalue().encode("utf-8", "surrogatepass")

    def _write_table(self) -> None:
        self._written = self._content()
        write_file(self._table, self._written)

    def _adopt_edits(self) -> None:
        """Read the table again if it is not what was last written; its rows are the labels then."""
        try:
            content = self._table.read_bytes()
        except FileNotFoundError:
            return
        if content == self._written:
            return
        rows = csv.DictReader(io.StringIO(content.decode("utf-8-sig", "replace"), newline=""))
        if rows.fieldnames is None or not {"text", "label"} <= set(rows.fieldnames):
            raise DataFileError(f"{self._table}: expected a table with columns text and label; move it away")
        edited = {row["text"]: (row["label"] or "").strip() for row in rows if row["text"]}
        for text, label in edited.items():
            if self.labels.get(text, "") != label:
                self._append({"id": "", "text": text, "label": label or None})
        if self._written is not None:  # rows that were deleted
            for text in [text for text in self.labels if text not in edited]:
                self._append({"id": "", "text": text, "label": None})
