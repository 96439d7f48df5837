"""Rows → a table, JSON lines or CSV on standard output."""

import csv
import json
import os
import sys
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mpad._text.printable import printable

_WIDEST = 10_000  # columns of a table that nobody looks at on a terminal


class Format(StrEnum):
    """How to print rows."""

    table = "table"
    jsonl = "jsonl"
    csv = "csv"


FormatOption = Annotated[Format, typer.Option("--format", "-f", help="How to print.")]


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
    """A value as a line of JSON; on a terminal without any character that could steer it."""
    return json.dumps(value, ensure_ascii=sys.stdout.isatty())


def _cell(value: Any) -> Text:
    text = f"{value:.4f}" if isinstance(value, float) else printable(" ".join(str(value).split()))
    return Text(text if len(text) <= 100 else text[:99] + "…")
