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
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mpad.errors import InputError
from mpad.text.printable import printable

_MAX_WIDTH = 10_000  # characters per line of a table outside a terminal


class Format(StrEnum):
    """Format of printed rows."""

    table = "table"
    jsonl = "jsonl"
    csv = "csv"


FormatOption = Annotated[Format, typer.Option("--format", "-f", help="Output format.")]
OutFile = Annotated[
    Path | None,
    typer.Option("--out", "-o", help="Write to this file instead: .csv, .tsv, .jsonl or .parquet.", show_default=False),
]
Spreadsheet = Annotated[
    bool,
    typer.Option("--spreadsheet", help="Escape cells that a spreadsheet would run as a formula with an apostrophe."),
]
_FILE_FORMATS = (".csv", ".tsv", ".jsonl", ".parquet")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def check_new(path: Path | None, force: bool, kinds: Sequence[str] = ()) -> None:
    """Raise InputError if a destination exists, unless `force`, or if its suffix is not one of `kinds`."""
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
        rows = ([_escape_formula(cell) for cell in row] for row in rows)
    if out is None:
        print_rows(columns, rows, form)
        return
    from mpad.files.atomic import write_file

    lists = [list(row) for row in rows]
    write_file(out, _as_bytes(columns, lists, out.suffix.lower()))
    typer.echo(f"wrote {out} ({len(lists):,} rows)", err=True)


def check_out(out: Path | None, force: bool) -> None:
    """Raise InputError if an output file of rows exists, unless `force`, or has an unknown format."""
    check_new(out, force, _FILE_FORMATS)


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


def _escape_formula(cell: Any) -> Any:
    """Prefix text that a spreadsheet would run as a formula with an apostrophe."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell


def print_rows(columns: Sequence[str], rows: Iterable[Sequence[Any]], form: Format, title: str | None = None) -> None:
    """Print rows in a format."""
    if form is Format.jsonl:
        for row in rows:
            sys.stdout.write(as_json(dict(zip(columns, row, strict=True))) + "\n")
    elif form is Format.csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(columns)
        to_terminal = sys.stdout.isatty()  # files keep control characters
        writer.writerows(
            [printable(cell) if isinstance(cell, str) else cell for cell in row] if to_terminal else row for row in rows
        )
    else:
        table = Table(title=title, title_justify="left", box=None, pad_edge=False)
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


def as_json(value: Any) -> str:
    """Return a value as a line of JSON, escaped on a terminal; NaN and infinity become null."""
    try:
        return json.dumps(value, ensure_ascii=sys.stdout.isatty(), allow_nan=False)
    except ValueError:
        return json.dumps(_replace_non_finite(value), ensure_ascii=sys.stdout.isatty())


def _replace_non_finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _replace_non_finite(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_replace_non_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _cell(value: Any) -> Text:
    text = f"{value:.4f}" if isinstance(value, float) else printable(" ".join(str(value).split()))
    return Text(text if len(text) <= 100 else text[:99] + "…")
