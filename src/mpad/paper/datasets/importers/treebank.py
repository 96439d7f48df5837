"""The Stanford sentiment treebank in Penn Treebank brackets → SST-1 and SST-2.

Every phrase of the training trees is a training example, smaller phrases first; held-out trees count as whole
sentences. Phrases that are the same but for case are one example, and the first label wins. SST-2 then leaves neutral
ones (2) out. Brackets stay as the treebank writes them (`-LRB-`): the paper's vocabulary has them as words.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from mpad.data.readers import Documents
from mpad.paper.datasets.dataset import as_documents
from mpad.paper.datasets.files import SST_CLASSES
from mpad.paper.datasets.importers.source import File, read_named

_PIECE = re.compile(r"[()]|[^ ()\t\r\n]+")
Phrase = tuple[str, str]  # label, text


def read_sst1(source: Path) -> dict[str, Documents]:
    """Five grades, "0" to "4"."""
    return _read(source, SST_CLASSES["sst1"])


def read_sst2(source: Path) -> dict[str, Documents]:
    """Bad ("0") and good ("1")."""
    return _read(source, SST_CLASSES["sst2"])


def _read(source: Path, classes: dict[str, str]) -> dict[str, Documents]:
    files = read_named(source, {"train": "train.txt", "dev": "dev.txt", "test": "test.txt"})
    parts = {}
    for part, file in files.items():
        rows = _distinct(_trees(file)) if part == "train" else [phrases[-1] for phrases in _trees(file)]
        parts[part] = as_documents((classes[label], text) for label, text in rows if label in classes)
    return parts


def _distinct(trees: Iterable[list[Phrase]]) -> list[Phrase]:
    known: dict[str, Phrase] = {}
    for phrases in trees:
        for label, text in phrases:
            known.setdefault(text.lower(), (label, text))
    return list(known.values())


def _trees(file: File) -> Iterator[list[Phrase]]:
    """The phrases of each tree, the whole sentence last."""
    for number, line in enumerate(file.lines(), start=1):
        if line.strip():
            yield _phrases(file, number, line)


def _phrases(file: File, number: int, line: str) -> list[Phrase]:
    words: list[str] = []
    result: list[Phrase] = []
    opened: list[tuple[str, int]] = []  # label and first word of the phrases that have begun
    pieces = iter(_PIECE.findall(line))
    for piece in pieces:
        if result and not opened:
            raise file.wrong(number, "one tree a line", line)
        if piece == "(":
            label = next(pieces, "")
            if label not in tuple("01234"):
                raise file.wrong(number, "a grade from 0 to 4 after every '('", f"({label}")
            opened.append((label, len(words)))
        elif not opened:
            raise file.wrong(number, "a tree such as (3 (2 It) (4 works))", line)
        elif piece == ")":
            label, start = opened.pop()
            result.append((label, " ".join(words[start:])))
        else:
            words.append(piece)
    if opened or not result:
        raise file.wrong(number, "as many ')' as '('", line)
    return result
