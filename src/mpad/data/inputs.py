"""Check documents, labels, weights and seeds that users pass in, and turn them into plain values."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpad.errors import InputError

_READ = "to_pylist", "to_list", "tolist"  # method names of Arrow; polars and pandas; NumPy


def as_texts(documents: Iterable[Any]) -> list[str]:
    """Check documents and return them as a list; any list, array or column of strings is accepted."""
    if isinstance(documents, (str, bytes)):
        raise InputError("expected many documents, found one string; put it in a list: [text]")
    if isinstance(documents, Mapping):
        shown = ", ".join(map(str, list(documents)[:8]))
        raise InputError(f"expected many documents, found a {type(documents).__name__} of {shown}; pass one column")
    names = column_names(documents)
    if names is not None and len(names) != 1:
        shown = ", ".join(map(str, names[:8]))
        raise InputError(f"expected a column of texts, found a table of {shown}; pass one column: table['text']")
    column: Any = documents if names is None else documents[names[0]]  # type: ignore[index]
    shape = getattr(column, "shape", None)
    if shape is not None and len(shape) == 2 and shape[1] == 1:
        column = column.ravel()
    elif shape is not None and len(shape) != 1:
        raise InputError(f"expected a one-dimensional array of texts, found shape {shape}")
    try:
        texts = list(column) if isinstance(column, (list, tuple)) else as_list(column)
    except TypeError:
        raise InputError(f"expected a list of texts, found {type(documents).__name__}") from None
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(
                f"document {number} is not a string but {type(text).__name__} ({text!r:.40}); "
                "fill missing texts with ''"
            )
    return texts


def as_examples(documents: Iterable[Any], y: Any) -> tuple[list[str], NDArray[Any]]:
    """Check documents and their labels, and that there are as many of each."""
    texts, labels = as_texts(documents), as_labels(y)
    if len(texts) != len(labels):
        raise InputError(f"X has {len(texts):,} documents but y has {len(labels):,} labels")
    return texts, labels


def as_validation(validation: tuple[Iterable[str], Any]) -> tuple[list[str], NDArray[Any]]:
    """Check held-out documents and their labels."""
    texts, y = as_texts(validation[0]), as_labels(validation[1])
    if len(texts) != len(y) or not texts:
        raise InputError(f"validation needs as many labels as documents; found {len(y):,} and {len(texts):,}")
    return texts, y


def as_unlabeled(unlabeled: Any, classes: Sequence[Any]) -> tuple[list[str], NDArray[np.float64] | None]:
    """Check texts without labels, alone or with the probability of each class: (texts, classes)."""
    if not (isinstance(unlabeled, tuple) and len(unlabeled) == 2 and not isinstance(unlabeled[1], str)):
        return _unlabeled_texts(unlabeled), None
    texts, table = _unlabeled_texts(unlabeled[0]), unlabeled[1]
    names = list(table) if isinstance(table, Mapping) else column_names(table)
    if names is not None:
        columns = {str(name): table[name] for name in names}
        missing = [str(name) for name in classes if str(name) not in columns]
        if missing:
            raise InputError(f"the probabilities of unlabeled texts have no column '{missing[0]}', which is a class")
        table = [columns[str(name)] for name in classes]
    try:
        given = np.asarray(table, np.float64)
    except (TypeError, ValueError):
        raise InputError("the probabilities of unlabeled texts must be numbers") from None
    given = given if names is None else given.T
    shape = len(texts), len(classes)
    if given.shape != shape:
        raise InputError(
            f"the probabilities of unlabeled texts must be {shape[0]:,} rows of {shape[1]} numbers; found shape "
            f"{given.shape}"
        )
    wrong = np.flatnonzero(~(np.isfinite(given) & (given >= 0)).all(1) | ~given.any(1))
    if len(wrong):
        row = ", ".join(f"{value:g}" for value in given[wrong[0]].tolist()[:8])
        raise InputError(f"row {wrong[0]} of the probabilities of unlabeled texts is no distribution: {row}")
    return texts, given / given.sum(1, keepdims=True)


def _unlabeled_texts(unlabeled: Any) -> list[str]:
    try:
        texts = as_texts(unlabeled)
    except InputError as error:
        raise InputError(f"unlabeled: {error}") from None
    if not any(text.strip() for text in texts):
        raise InputError("unlabeled holds no texts: pass some, or leave it out")
    return texts


def as_weights(weights: Any, n: int) -> NDArray[np.float32]:
    """Check sample weights, one per document; None means all 1."""
    if weights is None:
        return np.ones(n, np.float32)
    array = np.asarray(weights, np.float32)
    if array.shape != (n,) or not np.isfinite(array).all() or (array < 0).any() or not array.sum() > 0:
        raise InputError(
            f"sample_weight must be {n:,} finite numbers, none below 0 and not all 0; found shape {array.shape}"
        )
    return array


def as_seed(random_state: Any) -> int:
    """Draw a seed from a scikit-learn random state: None, an int or a RandomState."""
    from sklearn.utils import check_random_state  # here: prediction does not need scikit-learn

    try:
        return int(check_random_state(random_state).randint(2**31 - 1))
    except ValueError as error:
        raise InputError(f"random_state: {error}") from None


def as_labels(y: Any) -> NDArray[Any]:
    """Check labels that users pass in: a column, lists of labels, or a (sparse) indicator matrix or table."""
    names = column_names(y)
    if names is not None and len(names) == 1:
        y = y[names[0]]
    if hasattr(y, "toarray"):
        y = y.toarray()
    if getattr(y, "ndim", 1) == 2 or (names is not None and len(names) > 1):
        array = np.asarray(y)
        return _check_array(array.ravel().tolist(), array.ravel()) if array.shape[1] == 1 else array
    cells = as_list(y)
    lists = _label_tuples(cells)
    return _check_array(cells, y) if lists is None else lists


def _check_array(cells: list[Any], y: Any) -> NDArray[Any]:
    missing = [k for k, label in enumerate(cells) if label is None or (isinstance(label, float) and label != label)]
    if missing:
        raise InputError(f"the label of document {missing[0]} is missing ({cells[missing[0]]}); drop it or label it")
    if {isinstance(label, str) for label in cells} == {True, False}:
        raise InputError("labels mix strings and other types; make them all strings or all numbers")
    for label in cells:
        if isinstance(label, str) and not is_plain(label):
            raise InputError(f"a label holds a NUL character or half a surrogate pair: {label[:40]!r}; remove it")
        if isinstance(label, (bytes, dict, set)) or (isinstance(label, (list, tuple)) and not _are_numbers(label)):
            raise InputError(
                f"labels are strings or numbers, not {type(label).__name__} ({label!r:.40}); for many labels per "
                "document give lists of strings, or a binary indicator matrix"
            )
    try:
        return y if isinstance(y, np.ndarray) else np.asarray(cells)
    except ValueError:
        raise InputError(
            "labels have different lengths; for many labels per document give lists of strings, or a binary indicator "
            "matrix (scikit-learn's MultiLabelBinarizer makes one)"
        ) from None


def is_plain(label: str) -> bool:
    """Return whether a label can be stored: no NUL, no half of a surrogate pair."""
    return "\0" not in label and not any("\ud800" <= letter <= "\udfff" for letter in label)


def _label_tuples(rows: list[Any]) -> NDArray[Any] | None:
    """Return lists of labels as tuples, one per document: (n,); None for other labels."""
    if not rows or not all(isinstance(row, (list, tuple, set, frozenset)) for row in rows):
        return None
    if not any(isinstance(label, str) for row in rows for label in row):
        return None  # rows of an indicator matrix
    result = np.empty(len(rows), object)
    for number, row in enumerate(rows):
        if not all(isinstance(label, str) and is_plain(label) for label in row):
            raise InputError(f"the labels of document {number} are not all strings that can be kept: {list(row)!r:.60}")
        result[number] = tuple(sorted(set(row)))
    return result


def label_names(y: Any) -> list[str] | None:
    """Return the column names of a table of indicators (pandas, polars); None for anything else."""
    names = column_names(y)
    return None if names is None or len(names) < 2 else [str(name) for name in names]


def _are_numbers(row: Sequence[Any]) -> bool:
    """Return whether this may be a row of an indicator matrix."""
    return all(isinstance(value, (bool, int, float)) for value in row)


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
