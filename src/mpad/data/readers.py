"""Data files → documents and labels.

`mpad.data.tables` parses files; this module turns their columns into texts and labels. It also reads a folder with one
folder of text files per class, and several files by a pattern such as `reviews-*.csv`. A document has one label or
many: a JSON list, a cell with a separator, or a column of 0 and 1 per label.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from glob import glob, has_magic
from pathlib import Path
from typing import Any

from mpad.data.labels import as_lists
from mpad.data.tables import JOIN, LABEL_NAMES, TEXT_NAMES, Absent, Table, kind_of, open_table
from mpad.errors import DataFileError, InputError
from mpad.files.archives import read_unpacked
from mpad.files.encoding import decode

ID_NAMES = ("id", "doc_id", "document_id", "tweet_id", "uid")
Files = str | Path | Sequence[str | Path]  # a file, a folder or a pattern, or several of these
_ON, _OFF = frozenset({"1", "true", "yes", "x", "1.0"}), frozenset({"0", "false", "no", "", "0.0"})


@dataclass(frozen=True)
class ReadColumns:
    """The columns of a table that are read."""

    text: str | None = None
    labels: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()

    def __str__(self) -> str:
        labels = ", ".join(f"'{name[:60]}'" for name in self.labels[:20])
        label = f", label from {labels}" if labels else ""
        unused = f"; not used: {_join_names(self.unused)}" if self.unused else ""
        return f"text from '{(self.text or '')[:60]}'{label}{unused}"


@dataclass(frozen=True)
class Documents:
    """Texts, with their labels if the source has them; multi-label documents have a list each."""

    texts: list[str]
    labels: list[Any] | None = None
    columns: ReadColumns | None = None  # of a table
    ids: list[str] | None = None  # if the table has an id column
    further: Mapping[str, list[Any]] = field(default_factory=dict)  # values of other columns that were asked for

    def __len__(self) -> int:
        return len(self.texts)

    def examples(self, each: int = 3) -> list[tuple[str, str]]:
        """Return a few examples per class as pairs of label and text, preferring about 160 characters."""
        labels, chosen = self.labels or [], dict[str, list[str]]()
        for k in sorted(range(len(labels)), key=lambda k: abs(len(self.texts[k]) - 160)):
            own = chosen.setdefault(", ".join(labels[k]) if isinstance(labels[k], list) else str(labels[k]), [])
            if len(own) < each and self.texts[k].strip():
                own.append(self.texts[k][:1_000])
        return [(label, text) for label in sorted(chosen) for text in chosen[label]]

    def corrected(self, corrections: "Documents", new_classes: bool = False) -> "Documents":
        """Replace the labels of the texts that the corrections hold too, and add the other corrections.

        Raise InputError for labels that these documents do not have, unless `new_classes`.
        """
        labels, others = list(self.labels or []), list(corrections.labels or [])
        kinds, other_kinds = {type(label) for label in labels}, {type(label) for label in others}
        if kinds == {list} != other_kinds:
            raise InputError("documents have many labels: give the separator of those in --add by --separator")
        if kinds != other_kinds:
            labels, others = [str(label) for label in labels], [str(label) for label in others]
        known, named = ({name for own in as_lists(part) for name in own} for part in (labels, others))
        if named - known and not new_classes:
            raise InputError(
                f"--add has labels that DATA does not have: {', '.join(sorted(named - known)[:5])} (DATA has: "
                f"{', '.join(sorted(known)[:8])}); correct them, or give --new-classes if they are meant"
            )
        latest = dict(zip(corrections.texts, others, strict=True))
        labels = [latest.get(text, label) for text, label in zip(self.texts, labels, strict=True)]
        for text in self.texts:
            latest.pop(text, None)
        return Documents([*self.texts, *latest], [*labels, *latest.values()], self.columns)


@dataclass(frozen=True)
class TableRows:
    """Texts with all columns of their table."""

    names: list[str]
    cells: list[Sequence[Any]]
    text_at: int = 0  # place of the text column


def read_documents(
    path: Files,
    text: str | None = None,
    label: str | Sequence[str] | None = None,
    need_labels: bool = True,
    separator: str | None = None,
    unlabelled: list[str] | None = None,
    remembered: ReadColumns | None = None,
    further: Sequence[str] = (),
) -> Documents:
    """Read a file, a folder, all files of a pattern, or several of these in a list.

    Parameters
    ----------
    path : str, path or list of these
        CSV, TSV, JSON lines, Parquet or Excel files (also .gz, .xz, .zip), or a folder with a folder per class.
    text : str, optional
        Text column; by default the one with a common name (`text`, `review`, ...). Several such columns are an error.
        "title + body" joins two columns, or more.
    label : str or sequence of str, optional
        Label column, by default the one with a common name (`label`, `category`, ...). Several columns hold 0 and 1,
        one per label.
    need_labels : bool, default=True
        Raise if there are no labels.
    separator : str, optional
        Separator of several labels in a cell.
    unlabelled : list, optional
        Rows without a label are left out, and their places are added to this list; by default they are an error.
    remembered : ReadColumns, optional
        Columns to read in place of the ones with common names.
    further : sequence of str, optional
        Other columns whose values are read too.

    Returns
    -------
    Documents

    Raises
    ------
    DataFileError
        A file is missing or damaged, or has no such column.

    """
    files = matching_files(path)
    if len(files) > 1:
        options = text, label, need_labels, separator, unlabelled, remembered, further
        return _join([read_documents(file, *options) for file in files])
    path = files[0]
    if further and (path.is_dir() or kind_of(path) == ".txt"):
        raise DataFileError(f"{path}: has no column '{further[0]}'; expected a table")
    if path.is_dir():
        return _read_folder(path)
    if need_labels and kind_of(path) == ".txt":
        raise DataFileError(
            f"{path}: plain text has no labels; expected .csv, .tsv, .jsonl, .parquet or a folder of class folders"
        )
    table = open_table(path, [_joined_name(text, remembered), *as_names(label)])
    if not table.names:
        return Documents([], [] if need_labels else None)
    text_at, labels_at = find_columns(table, text, label, need_labels, remembered)
    others_at = {name: _named_column(table, name, "--slices") for name in further}
    return _read_table(path, table, text_at, labels_at, separator, unlabelled, others_at)


def _read_table(
    path: Path,
    table: Table,
    text_at: int,
    labels_at: list[int],
    separator: str | None,
    unlabelled: list[str] | None,
    others_at: Mapping[str, int],
) -> Documents:
    """Return the documents of a table whose columns are chosen."""
    free = [at for at in range(len(table.names)) if at not in (text_at, *labels_at)]
    id_at = next((at for at in free if table.names[at].lower() in ID_NAMES), None)
    texts, labels, ids = list[str](), [], list[str]()
    others: dict[str, list[Any]] = {name: [] for name in others_at}
    for one, own, row in read_examples(table, text_at, labels_at, separator, unlabelled):
        texts.append(one)
        labels.append(own)
        ids.append("" if id_at is None else str(row[id_at]))
        for name, at in others_at.items():
            others[name].append(None if isinstance(row[at], Absent) else row[at])
    shown = None if kind_of(path) == ".txt" else _describe_columns(table, text_at, labels_at)
    return Documents(texts, as_numbers(labels) if labels_at else None, shown, None if id_at is None else ids, others)


def _join(parts: list[Documents]) -> Documents:
    """Return the documents of several files as one list."""
    texts = [one for part in parts for one in part.texts]
    labels = [one for part in parts for one in part.labels or []]
    further = {name: [value for part in parts for value in part.further[name]] for name in parts[0].further}
    known = as_numbers(labels) if len(labels) == len(texts) else None
    return Documents(texts, known, parts[0].columns, further=further)


def read_rows(path: Files, text: str | None = None, remembered: ReadColumns | None = None) -> TableRows:
    """Read a file with all its columns."""
    files = matching_files(path)
    if len(files) > 1 or files[0].is_dir():
        texts = read_documents(path, text, need_labels=False, remembered=remembered).texts
        return TableRows(["text"], [[one] for one in texts])
    table = open_table(files[0], [_joined_name(text, remembered)])
    if not table.names:
        return TableRows(["text"], [])
    text_at = find_text_column(table, text, remembered)
    cells: list[Sequence[Any]] = []
    for number, row in table.rows:
        own = [None if isinstance(cell, Absent) else cell for cell in row]
        own[text_at] = read_text(table, number, row[text_at], text_at)
        cells.append(own)
    return TableRows(table.names, cells, text_at)


def choose_columns(
    path: Files,
    text: str | None,
    label: str | Sequence[str] | None,
    need_labels: bool = True,
    remembered: ReadColumns | None = None,
) -> ReadColumns | None:
    """Return the columns that would be read from the first file, without reading rows; None if it has no columns."""
    file = matching_files(path)[0]
    if file.is_dir() or kind_of(file) == ".txt":
        return None
    table = open_table(file, [_joined_name(text, remembered), *as_names(label)], streamed=True)
    if not table.names:
        return None
    return _describe_columns(table, *find_columns(table, text, label, need_labels, remembered))


def _describe_columns(table: Table, text_at: int, labels_at: Sequence[int]) -> ReadColumns:
    text = table.names[text_at]
    joined = text.split(JOIN) if text_at == len(table.names) - 1 else []
    unused = (name for at, name in enumerate(table.names) if at not in (text_at, *labels_at) and name not in joined)
    return ReadColumns(table.names[text_at], tuple(table.names[at] for at in labels_at), tuple(unused))


def matching_files(path: Files) -> list[Path]:
    """List the files of a pattern such as `reviews-*.csv`, or the file or folder of that name; or of several."""
    if not isinstance(path, (str, Path)):
        if not isinstance(path, (list, tuple)) or not path or not all(isinstance(one, (str, Path)) for one in path):
            raise DataFileError(
                f"expected a file, a pattern or a list of these, found {type(path).__name__}; the columns of a table "
                "go to fit as they are: fit(table['text'], table['label'])"
            )
        return [file for one in path for file in matching_files(one)]
    if has_magic(str(path)) and not Path(path).exists():
        files = sorted(Path(name) for name in glob(str(path), recursive=True) if Path(name).is_file())
        if not files:
            raise DataFileError(f"{path}: no file has a name like that")
        return files
    path = Path(path)
    if not path.exists():
        raise DataFileError(f"{path}: no such file or folder")
    if not path.is_file() and not path.is_dir():
        raise DataFileError(f"{path}: not a regular file; write what it gives to a file first")
    return [path]


# ── Columns ──


def _joined_name(text: str | None, remembered: ReadColumns | None) -> str | None:
    """Return the name of the text column, or of several that are joined, if it is known before the file is opened."""
    if text is None and remembered is not None and remembered.text is not None and JOIN in remembered.text:
        return remembered.text
    return text


def as_names(label: str | Sequence[str] | None) -> list[str]:
    """Return the names of the label columns that the user named."""
    return [label] if isinstance(label, str) else list(label or [])


def find_columns(
    table: Table,
    text: str | None,
    label: str | Sequence[str] | None,
    need_labels: bool = True,
    remembered: ReadColumns | None = None,
) -> tuple[int, list[int]]:
    """Return the places of the text column and of the label columns; of no labels if none are needed and there."""
    text_at = find_text_column(table, text, remembered)
    return text_at, _find_label_columns(table, as_names(label), need_labels, text_at, remembered)


def find_text_column(table: Table, name: str | None, remembered: ReadColumns | None = None) -> int:
    """Return the place of the text column: the one of that name, the remembered one, or one with a common name."""
    if name is None and remembered is not None and remembered.text in table.names:
        name = remembered.text
    at = _guess_column(table, TEXT_NAMES, "--text") if name is None else _named_column(table, name, "--text")
    if at is None:
        raise DataFileError(
            f"{table.path}: no column of text among {_join_names(table.names)}; name it with --text (text=... in "
            "Python); the first row must hold the names of the columns"
        )
    kind = table.types.get(table.names[at], "string")
    if kind not in ("string", "large_string", "string_view", "null") and "values=string" not in kind:
        raise DataFileError(
            f"{table.path}: column '{table.names[at]}' holds {kind}, not text; name another with --text"
        )
    return at


def _find_label_columns(
    table: Table, named: Sequence[str], needed: bool, text_at: int, remembered: ReadColumns | None
) -> list[int]:
    if not named and remembered is not None and set(remembered.labels) <= set(table.names):
        named = remembered.labels
    places = [_named_column(table, name, "--label") for name in named]
    if not named:
        at = _guess_column(table, LABEL_NAMES, "--label" if needed else None, text_at)
        places = [] if at is None else [at]
    if not needed:
        return [] if places == [text_at] else places
    if not places:
        listed = _join_names(table.names)
        raise DataFileError(
            f"{table.path}: no column of labels among {listed}; name it with --label (label=... in Python)"
        )
    if places == [text_at]:
        raise DataFileError(
            f"{table.path}: column '{table.names[text_at]}' cannot be both text and label; name them apart"
        )
    return places


def _named_column(table: Table, name: str, option: str) -> int:
    """Return the place of the column of that name."""
    path, names = table.path, table.names
    if name not in names:
        raise DataFileError(f"{path}: no column '{name}' for {option} (there are: {_join_names(names)})")
    if names.count(name) > 1:
        raise DataFileError(f"{path}: {names.count(name)} columns are named '{name}'; rename all but one")
    return names.index(name)


def _guess_column(table: Table, guesses: Sequence[str], option: str | None, other: int | None = None) -> int | None:
    """Return the place of the column with a common name, except `other`; None if none, or several and no `option`."""
    lowered = [one.lower() for one in table.names]
    places = [lowered.index(guess) for guess in guesses if guess in lowered]
    places = [at for at in places if at != other] or places
    if not places:
        return None
    if len(places) > 1 and lowered[places[0]] != guesses[0]:
        if option is None:
            return None
        what = option.removeprefix("--")
        raise DataFileError(
            f"{table.path}: several columns could be the {what}: {_join_names([table.names[at] for at in places])}; "
            f"name one with {option} ({what}=... in Python)"
        )
    return _named_column(table, table.names[places[0]], option or "")


def _join_names(names: Sequence[str]) -> str:
    """Join names for a message, shortening long lists."""
    return ", ".join(name[:60] for name in names[:20]) + (f" … ({len(names):,} in all)" if len(names) > 20 else "")


# ── Cells ──


def read_examples(
    table: Table,
    text_at: int,
    labels_at: Sequence[int],
    separator: str | None,
    unlabelled: list[str] | None = None,
) -> Iterator[tuple[str, Any, Sequence[Any]]]:
    """Yield the text of each row, its label, list of labels or None, and the row.

    A row without its label is left out if a list `unlabelled` is given, and its place added to that.
    """
    leave_out = unlabelled is not None and len(labels_at) == 1 and separator is None
    for number, row in table.rows:
        if leave_out and _is_missing(row[labels_at[0]]):
            unlabelled.append(f"{table.place} {number}")  # type: ignore[union-attr]
            continue
        text = read_text(table, number, row[text_at], text_at)
        yield text, _read_label(table, number, row, labels_at, separator) if labels_at else None, row


def read_text(table: Table, number: int, cell: Any, at: int) -> str:
    """Return the text in a cell."""
    where = f"{table.path}, {table.place} {number}"
    _check_present(where, table.names[at], cell)
    if cell is None and table.place == "row":
        return ""
    if not isinstance(cell, str):
        if table.place == "row" and isinstance(cell, (int, float)):
            return str(cell)  # a cell of a spreadsheet that happens to look like a number
        raise DataFileError(f"{where}: '{table.names[at]}' is not a string: {cell!r:.60}")
    return cell


def _read_label(table: Table, number: int, row: Sequence[Any], places: Sequence[int], separator: str | None) -> Any:
    where = f"{table.path}, {table.place} {number}"
    for at in places:
        _check_present(where, table.names[at], row[at])
    if len(places) > 1:
        return [table.names[at] for at in places if _is_on(where, table.names[at], row[at])]
    cell = row[places[0]]
    if isinstance(cell, list):
        return [_check_label(where, one) for one in cell]
    if separator is not None:
        return [part.strip() for part in str("" if cell is None else cell).split(separator) if part.strip()]
    return _check_label(where, cell)


def _check_present(where: str, name: str, cell: Any) -> None:
    if isinstance(cell, Absent):
        raise DataFileError(f"{where}: no '{name}' in this object (it has: {_join_names(cell.keys)})")


def _is_on(where: str, name: str, cell: Any) -> bool:
    value = str("" if cell is None else cell).strip().lower()
    if value not in _ON | _OFF:
        raise DataFileError(f"{where}: column '{name}' is one of several labels: expected 0 or 1, found {cell!r:.40}")
    return value in _ON


def _is_missing(label: object) -> bool:
    return label is None or label != label or not str(label).strip()


def _check_label(where: str, label: object) -> Any:
    if _is_missing(label):
        raise DataFileError(f"{where}: the label is missing; drop the row or label it")
    if not isinstance(label, (str, int, float)):
        raise DataFileError(
            f"{where}: the label is {type(label).__name__}, {label!r:.60}; expected a string or a number"
        )
    return label if type(label) is int else str(label)


def as_numbers(labels: list[Any]) -> list[Any]:
    """Turn labels into integers if all of them are, else into strings; lists of labels become lists of strings."""
    if any(isinstance(label, list) for label in labels):
        return [[str(one) for one in (label if isinstance(label, list) else [label])] for label in labels]
    if all(type(label) is int or _is_whole(label) for label in labels):
        return [int(label) for label in labels]
    return [str(label) for label in labels]


def _is_whole(label: str) -> bool:
    return len(label) < 19 and label.isascii() and label.removeprefix("-").isdigit() and str(int(label)) == label


def _read_folder(path: Path) -> Documents:
    classes = sorted(folder for folder in path.iterdir() if folder.is_dir() and not folder.name.startswith("."))
    if not classes:
        raise DataFileError(f"{path}: expected a folder for each class with a text file for each document")
    texts, labels = [], []
    for folder in classes:
        for file in sorted(file for file in folder.rglob("*") if file.is_file() and not file.name.startswith(".")):
            texts.append(decode(str(file), read_unpacked(file)))
            labels.append(folder.name)
    if not texts:
        raise DataFileError(f"{path}: its class folders ({', '.join(f.name for f in classes)}) hold no files")
    return Documents(texts, labels)
