"""Columns as people have them, of NumPy, pandas, polars, Arrow or Hugging Face `datasets` → lists of plain values."""

from typing import Any

from mpad.errors import InputError

_READ = "to_pylist", "to_list", "tolist"  # what libraries call it: Arrow; polars and pandas; NumPy


def as_list(column: Any) -> list[Any]:
    """Cells of a column as Python has them: strings, numbers, lists of these; None for what is missing."""
    if hasattr(column, "column_name") and hasattr(column, "__len__"):  # of `datasets`, which is slow one by one
        column = column[:]
    read = next((getattr(column, name) for name in _READ if hasattr(column, name)), None)
    return [_plain(cell) for cell in (column if read is None else read())]


def _plain(cell: Any) -> Any:
    if type(cell) in (str, int, float, list):
        return cell
    read = next((getattr(cell, name) for name in _READ[1:] if hasattr(cell, name)), None)
    if read is not None:
        return read()
    return None if type(cell).__name__ in ("NAType", "NaTType") else cell


def column_names(table: Any) -> list[str] | None:
    """Names of a table's columns; None of what is no table."""
    if type(table).__name__ == "LazyFrame":  # of polars
        raise InputError("found a LazyFrame, which is not read yet; pass frame.collect()")
    names = getattr(table, "column_names", None)
    if names is None:
        names = getattr(table, "columns", None)
    return None if names is None else list(names)
