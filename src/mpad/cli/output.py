"""Output of rows as a table, JSON lines or CSV, or to a file in the format of its suffix."""

import csv
import io
import json
import math
import os
import sys
from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text
from typer import Option

from mpad.errors import InputError
from mpad.text.printable import printable

_MAX_WIDTH = 10_000  # characters per line of a table outside a terminal
_FILE_FORMATS = (".csv", ".tsv", ".jsonl", ".parquet")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


class Format(StrEnum):
    """Format of printed rows."""

    table = "table"
    jsonl = "jsonl"
    csv = "csv"


FormatOption = Annotated[Format, Option("--format", "-f", help="Output format.")]
OutFile = Annotated[
    Path | None,
    Option("--out", "-o", help="Write to this file instead: .csv, .tsv, .jsonl or .parquet.", show_default=False),
]
Spreadsheet = Annotated[
    bool,
    Option("--spreadsheet", help="Escape cells that a spreadsheet would run as a formula with an apostrophe."),
]


def check_new(path: Path | None, force: bool, kinds: Sequence[str] = ()) -> None:
    """Raise InputError if a destination exists, unless `force`, or if its suffix is not one of `kinds`."""
    if path is None:
        return
    if kinds and path.suffix.lower() not in kinds:
        raise InputError(f"{path}: expected a file name that ends in {', '.join(kinds)}")
    empty = path.is_dir() and not path.is_symlink() and not any(path.iterdir())
    if (path.exists() or path.is_symlink()) and not empty and not force:
        raise InputError(f"{path}: exists already; name another destination, or give --force to replace it")


def check_out(out: Path | None, force: bool) -> None:
    """Raise InputError if an output file of rows exists, unless `force`, or has an unknown format."""
    check_new(out, force, _FILE_FORMATS)


def show_rows(
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    form: Format,
    out: Path | None,
    spreadsheet: bool = False,
) -> None:
    """Print rows, or write them to a file in the format of its suffix."""
    if spreadsheet:
        rows = ([_escape_formula(cell) for cell in row] for row in rows)
    if out is None:
        print_rows(columns, rows, form)
        return
    lists = [list(row) for row in rows]
    write_output(out, _as_bytes(columns, lists, out.suffix.lower()), f"{len(lists):,} rows")


def write_output(out: Path, content: bytes, what: str = "") -> None:
    """Write a file and print its name."""
    from mpad.files.atomic import write_file

    write_file(out, content)
    typer.echo(f"wrote {out}" + (f" ({what})" if what else ""), err=True)


def _as_bytes(columns: Sequence[str], rows: list[list[Any]], suffix: str) -> bytes:
    if suffix == ".parquet":
        import pyarrow
        import pyarrow.parquet

        sink = io.BytesIO()
        cells = {name: pyarrow.array([row[k] for row in rows]) for k, name in enumerate(columns)}
        pyarrow.parquet.write_table(pyarrow.table(cells), sink)
        return sink.getvalue()
    text = io.StringIO(newline="")
    _write_lines(text, columns, rows, suffix)
    return text.getvalue().encode("utf-8", "backslashreplace")


def _write_lines(file: TextIO, columns: Sequence[str], rows: Iterable[Sequence[Any]], suffix: str) -> None:
    """Write rows as JSON lines, CSV or TSV, escaped on a terminal; files keep control characters."""
    escape = file.isatty()
    if suffix == ".jsonl":
        file.writelines(f"{as_json(dict(zip(columns, row, strict=True)), escape)}\n" for row in rows)
        return
    writer = csv.writer(file, delimiter="\t" if suffix == ".tsv" else ",", lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(
        [printable(cell) if isinstance(cell, str) else cell for cell in row] if escape else row for row in rows
    )


def _escape_formula(cell: Any) -> Any:
    """Prefix text that a spreadsheet would run as a formula with an apostrophe."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell


def print_rows(columns: Sequence[str], rows: Iterable[Sequence[Any]], form: Format = Format.table) -> None:
    """Print rows in a format."""
    if form is not Format.table:
        _write_lines(sys.stdout, columns, rows, f".{form}")
        return
    table = Table(box=None, pad_edge=False)
    lists = [list(row) for row in rows]
    for number, column in enumerate(columns):
        numeric = all(isinstance(row[number], (int, float)) for row in lists)
        table.add_column(_cell(column), justify="right" if numeric else "left", overflow="fold")
    for row in lists:
        table.add_row(*[_cell(value) for value in row])
    console = Console(emoji=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        wide = console.options.update(max_width=_MAX_WIDTH)
        console.width = max(console.width, console.measure(table, options=wide).maximum)  # one line per row
    console.print(table)


def print_json(value: Any) -> None:
    """Print a value as a line of JSON, escaped on a terminal."""
    typer.echo(as_json(value, sys.stdout.isatty()))


def as_json(value: Any, escape: bool = False) -> str:
    """Return a value as a line of JSON; NaN and infinity become null."""
    try:
        return json.dumps(value, ensure_ascii=escape, allow_nan=False)
    except ValueError:
        return json.dumps(_replace_non_finite(value), ensure_ascii=escape)


def _replace_non_finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _replace_non_finite(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_replace_non_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _cell(value: Any) -> Text:
    text = f"{value:.4f}" if isinstance(value, float) else printable(" ".join(str(value).split()))
    return Text(text if len(text) <= 100 else text[:99] + "…")
