"""Distributions with a text file a document, in a folder a class: IMDB's `aclImdb` and BBCSport."""

from pathlib import Path, PurePosixPath

from mpad.data.readers import Documents
from mpad.errors import DataFileError
from mpad.paper.datasets.dataset import as_documents
from mpad.paper.datasets.importers.source import read_files

_SPORTS = ("athletics", "cricket", "football", "rugby", "tennis")


def read_imdb(source: Path) -> dict[str, Documents]:
    """`{train,test}/{pos,neg}/*.txt`; reviews without a label (`unsup`) are left out."""
    result: dict[str, list[tuple[str, int, str]]] = {"train": [], "test": []}

    def is_review(path: PurePosixPath) -> bool:
        return path.suffix == ".txt" and path.parts[-3:-1] in [(p, c) for p in result for c in ("neg", "pos")]

    for file in read_files(source, is_review):
        number = file.path.stem.partition("_")[0]
        if not number.isdigit():
            raise DataFileError(f"{file}: expected a file named number_rating.txt")
        result[file.path.parts[-3]].append((file.path.parts[-2], int(number), file.text()))
    if not all(result.values()):
        raise DataFileError(f"{source}: expected aclImdb's train/pos, train/neg, test/pos and test/neg; found none")
    return {part: as_documents((label, text) for label, _, text in sorted(rows)) for part, rows in result.items()}


def read_bbcsport(source: Path) -> dict[str, Documents]:
    """`bbcsport/<sport>/001.txt` …: the first line is the title."""
    rows = sorted(
        (file.path.parts[-2], file.path.name, file.text("latin-1"))
        for file in read_files(source, lambda path: path.suffix == ".txt" and len(path.parts) > 1)
        if file.path.parts[-2] in _SPORTS
    )
    missing = [sport for sport in _SPORTS if sport not in {label for label, *_ in rows}]
    if missing:
        raise DataFileError(f"{source}: expected folders {', '.join(_SPORTS)}; there is no {', no '.join(missing)}")
    return {"all": as_documents((label, text) for label, _, text in rows)}
