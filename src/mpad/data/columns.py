"""Columns of NumPy, pandas, polars, Arrow or Hugging Face `datasets` → lists of Python values."""

from typing import Any

from mpad.errors import InputError

_READ = "to_pylist", "to_list", "tolist"  # method names of Arrow; polars and pandas; NumPy


def as_list(column: Any) -> list[Any]:
    """Return the cells of a column as Python values: strings, numbers, lists of these; None for missing ones."""
    if hasattr(column, "column_name") and hasattr(column, "__len__"):  # of `datasets`, which reads single cells slowly
        column = column[:]
    read = next((getattr(column, name) for name in _READ if hasattr(column, name)), None)
    return [_to_plain(cell) for cell in (column if read is None else read())]


def _to_plain(cell: Any) -> Any:
    if type(cell) in (str, int, float, list):
        return cell
    read = next((getattr(cell, name) for name in _READ[1:] if hasattr(cell, name)), None)
    if read is not None:
        return read()
    return None if type(cell).__name__ in ("NAType", "NaTType") else cell


def column_names(table: Any) -> list[str] | None:
    """Return the names of a table's columns; None if the value is not a table."""
    if type(table).__name__ == "LazyFrame":  # of polars
        raise InputError("found a LazyFrame, which is not read yet; pass frame.collect()")
    names = getattr(table, "column_names", None)
    if names is None:
        names = getattr(table, "columns", None)
    return None if names is None else list(names)
