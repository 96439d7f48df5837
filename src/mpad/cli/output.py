"""Rows → a table, JSON lines or CSV on standard output, or a file in the format of its suffix."""

import csv
import io
import json
import math
import os
import sys
from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mpad.errors import InputError
from mpad.text.printable import printable

_WIDEST = 10_000  # columns of a table that nobody looks at on a terminal


class Format(StrEnum):
    """How to print rows."""

    table = "table"
    jsonl = "jsonl"
    csv = "csv"


FormatOption = Annotated[Format, typer.Option("--format", "-f", help="How to print.")]
OutFile = Annotated[
    Path | None,
    typer.Option("--out", "-o", help="Write to this file instead: .csv, .tsv, .jsonl or .parquet.", show_default=False),
]
Spreadsheet = Annotated[
    bool,
    typer.Option("--spreadsheet", help="CSV for spreadsheets: ' before cells that they would run as a formula."),
]
_WRITTEN = (".csv", ".tsv", ".jsonl", ".parquet")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def check_new(path: Path | None, force: bool, kinds: Sequence[str] = ()) -> None:
    """Refuse a destination that exists, unless --force is given, or that has another suffix than one of `kinds`."""
    if path is None:
        return
    if kinds and path.suffix.lower() not in kinds:
        raise InputError(f"{path}: expected a file name that ends in {', '.join(kinds)}")
    empty = path.is_dir() and not path.is_symlink() and not any(path.iterdir())
    if (path.exists() or path.is_symlink()) and not empty and not force:
        raise InputError(f"{path}: exists already; name another destination, or give --force to replace it")


def show_rows(
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    form: Format,
    out: Path | None,
    spreadsheet: bool = False,
) -> None:
    """Print rows, or write them to a file in the format of its suffix."""
    if spreadsheet:
        rows = ([_without_formula(cell) for cell in row] for row in rows)
    if out is None:
        print_rows(columns, rows, form)
        return
    from mpad.files.atomic import write_file

    listed = [list(row) for row in rows]
    write_file(out, _as_bytes(columns, listed, out.suffix.lower()))
    typer.echo(f"wrote {out} ({len(listed):,} rows)", err=True)


def check_out(out: Path | None, force: bool) -> None:
    """Refuse a file of rows that exists, or whose format is unknown."""
    check_new(out, force, _WRITTEN)


def _as_bytes(columns: Sequence[str], rows: list[list[Any]], suffix: str) -> bytes:
    if suffix == ".parquet":
        import pyarrow
        import pyarrow.parquet

        sink = io.BytesIO()
        cells = {name: pyarrow.array([row[k] for row in rows]) for k, name in enumerate(columns)}
        pyarrow.parquet.write_table(pyarrow.table(cells), sink)
        return sink.getvalue()
    if suffix == ".jsonl":
        lines = (json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False) for row in rows)
        return "".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace")
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter="\t" if suffix == ".tsv" else ",", lineterminator="\n")
    writer.writerows([columns, *rows])
    return text.getvalue().encode("utf-8", "backslashreplace")


def _without_formula(cell: Any) -> Any:
    """Put an apostrophe before a text that a spreadsheet would run as a formula."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell


def print_rows(columns: Sequence[str], rows: Iterable[Sequence[Any]], form: Format, title: str | None = None) -> None:
    """Print rows in the format asked for."""
    if form is Format.jsonl:
        for row in rows:
            sys.stdout.write(as_json(dict(zip(columns, row, strict=True))) + "\n")
    elif form is Format.csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(columns)
        to_terminal = sys.stdout.isatty()  # a file gets documents as they are
        writer.writerows(
            [printable(cell) if isinstance(cell, str) else cell for cell in row] if to_terminal else row for row in rows
        )
    else:
        table = Table(title=title, title_justify="left", box=None, pad_edge=False)
        listed = [list(row) for row in rows]
        for number, column in enumerate(columns):
            numeric = all(isinstance(row[number], (int, float)) for row in listed)
            table.add_column(_cell(column), justify="right" if numeric else "left", overflow="fold")
        for row in listed:
            table.add_row(*[_cell(value) for value in row])
        console = Console(emoji=False)
        if not console.is_terminal and "COLUMNS" not in os.environ:
            wide = console.options.update(max_width=_WIDEST)
            console.width = max(console.width, console.measure(table, options=wide).maximum)  # a row is a line
        console.print(table)


def as_json(value: Any) -> str:
    """Return a value as a line of JSON; on a terminal without control characters. NaN and infinity become null."""
    try:
        return json.dumps(value, ensure_ascii=sys.stdout.isatty(), allow_nan=False)
    except ValueError:
        return json.dumps(_finite(value), ensure_ascii=sys.stdout.isatty())


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _cell(value: Any) -> Text:
    text = f"{value:.4f}" if isinstance(value, float) else printable(" ".join(str(value).split()))
    return Text(text if len(text) <= 100 else text[:99] + "…")
