"""Datasets as files: `<folder>/<name>/<part>.tsv`, a line `label<TAB>text` per document; also .xz or .gz.

The folder is MPAD_DATA where that is set, else `~/.cache/mpad`. Models that read trees have the Stanford sentiment
treebank as it is distributed: `<folder>/sst_trees/{train,dev,test}.txt`.
"""

import lzma
import os
import re
from pathlib import Path

from mpad.data.readers import Documents
from mpad.errors import DataFileError, InputError, MissingDataset
from mpad.files.archives import read_unpacked
from mpad.files.atomic import write_file
from mpad.files.cache import cache_folder
from mpad.files.encoding import decode, split_lines
from mpad.paper.datasets.catalogue import CATALOGUE
from mpad.paper.datasets.dataset import Dataset, as_documents

_BREAKS = re.compile(r"[\t\r\n]+ *")  # a document is a line
_PACKINGS = ("", ".xz", ".gz")
SST_CLASSES = {"sst1": {grade: grade for grade in "01234"}, "sst2": {"0": "0", "1": "0", "3": "1", "4": "1"}}


def data_folders() -> list[Path]:
    """Return the folders that are searched for datasets, in order; imports are written to the first."""
    cache = cache_folder()
    named = os.environ.get("MPAD_DATA")
    return [Path(named).expanduser(), cache] if named else [cache]


def find_files(name: str) -> dict[str, Path] | None:
    """Each part's file, or None where the dataset is not to be had."""
    entry = CATALOGUE[name]
    for folder in data_folders():
        for own in (name, *entry.folders):
            result = {part: _first(folder / own / f"{part}.tsv") for part in entry.parts}
            present = {part: file for part, file in result.items() if file is not None}
            if present:
                missing = [part for part in entry.parts if part not in present]
                if missing:
                    raise DataFileError(
                        f"{folder / own}: expected {', '.join(f'{part}.tsv[.xz]' for part in entry.parts)}; "
                        f"there is no {', no '.join(missing)}"
                    )
                return present
    return None


def _first(file: Path) -> Path | None:
    """Return a file, or that file packed, whichever is there."""
    return next((each for packing in _PACKINGS if (each := Path(f"{file}{packing}")).is_file()), None)


def read_dataset(name: str) -> Dataset:
    """Read the files of a dataset of the catalogue."""
    files = find_files(name)
    if files is None:
        looked = " or ".join(str(folder / name) for folder in data_folders())
        raise MissingDataset(
            f"dataset '{name}' is not here (looked in {looked}): set MPAD_DATA to the folder that has it, or import "
            f"it: mpad data import {name} SOURCE, where SOURCE is {CATALOGUE[name].source}"
        )
    parts = {part: read_part(file) for part, file in files.items()}
    if "all" in parts:
        return Dataset(name, train=parts["all"], test=Documents([], []))
    return Dataset(name, parts["train"], parts["test"], parts.get("dev"))


def read_part(path: Path) -> Documents:
    """Read a file of `label<TAB>text` lines; what is not one is told by its line."""
    rows = []
    for number, line in enumerate(split_lines(decode(str(path), read_unpacked(path))), start=1):
        label, tab, text = line.partition("\t")
        if not tab or not label.strip():
            raise DataFileError(f"{path}, line {number}: expected label<TAB>text, found {line[:60]!r}")
        rows.append((label, text))
    if not rows:
        raise DataFileError(f"{path}: holds no documents; expected a line label<TAB>text a document")
    return as_documents(rows)


def load_trees(name: str) -> Dataset:
    """Load SST-1 or SST-2, each text a tree in brackets, its label that of the root; SST-2 has no neutral roots."""
    if name not in SST_CLASSES:
        raise InputError(f"there are no parse trees for '{name}': models over trees run on {' and '.join(SST_CLASSES)}")
    parts = {part: _read_trees(part, SST_CLASSES[name]) for part in ("train", "dev", "test")}
    return Dataset(name, parts["train"], parts["test"], parts["dev"])


def _read_trees(part: str, classes: dict[str, str]) -> Documents:
    folders = [folder / "sst_trees" for folder in data_folders()]
    file = next(filter(None, (_first(folder / f"{part}.txt") for folder in folders)), None)
    if file is None:
        looked = " or ".join(map(str, folders))
        raise MissingDataset(f"no {part}.txt of the Stanford treebank's trees (PTB format) in {looked}")
    trees = split_lines(decode(str(file), read_unpacked(file)))
    return as_documents((classes[tree.strip()[1]], tree) for tree in trees if tree.strip()[1:2] in classes)


def check_parts(name: str, parts: dict[str, Documents], source: Path) -> None:
    """Refuse what cannot be this dataset: a part that is empty, or that has other classes than it should."""
    expected = CATALOGUE[name].classes
    known = sorted({label for documents in parts.values() for label in documents.labels or []})
    for part, documents in parts.items():
        result = sorted(set(documents.labels or []))
        if not len(documents) or (part in ("train", "all") and len(result) != expected) or len(known) != expected:
            shown = ", ".join(known[:12]) + (" …" if len(known) > 12 else "")
            raise DataFileError(
                f"{source}: expected {expected} classes in every part of '{name}'; '{part}' has {len(documents):,} "
                f"documents of {len(result)} classes (in all: {shown or 'none'}); nothing was written"
            )


def write_dataset(name: str, parts: dict[str, Documents]) -> Path:
    """Write the parts of a dataset where they will be found; each file appears whole or not at all."""
    folder = data_folders()[0] / name
    folder.mkdir(parents=True, exist_ok=True)
    for part, documents in parts.items():
        lines = zip(documents.labels or [], documents.texts, strict=True)
        content = "".join(f"{label}\t{_BREAKS.sub(' ', text).strip(' ')}\n" for label, text in lines)
        write_file(folder / f"{part}.tsv.xz", lzma.compress(content.encode("utf-8"), preset=1))
        for packing in ("", ".gz"):
            (folder / f"{part}.tsv{packing}").unlink(missing_ok=True)  # or it would be read instead
    return folder
