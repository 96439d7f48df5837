"""Distributions with a document a line: a file a class (Polarity, Subjectivity, MPQA), or the label in the line."""

from pathlib import Path

from mpad.data.readers import Documents
from mpad.paper.datasets.importers.source import File, read_files, read_named

_KINDS = ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM")  # of questions


def read_polarity(source: Path) -> dict[str, Documents]:
    """rt-polarity.pos and rt-polarity.neg.

    Bytes that are no UTF-8 are dropped, not read as Latin-1: that gives the paper's vocabulary of 18,777 words.
    """
    return _file_a_class(source, {"pos": "rt-polarity.pos", "neg": "rt-polarity.neg"})


def read_subjectivity(source: Path) -> dict[str, Documents]:
    """quote.tok.gt9.5000 (subjective) and plot.tok.gt9.5000 (objective)."""
    return _file_a_class(source, {"subjective": "quote.tok.gt9.5000", "objective": "plot.tok.gt9.5000"})


def read_mpqa(source: Path) -> dict[str, Documents]:
    """mpqa.pos and mpqa.neg, or mpqa.all with lines `1 good phrase`, `0 bad phrase`."""
    together = next(read_files(source, lambda path: path.name.lower() == "mpqa.all"), None)
    if together is None:
        return _file_a_class(source, {"pos": "mpqa.pos", "neg": "mpqa.neg"})
    rows = []
    for number, line in enumerate(together.lines("latin-1"), start=1):
        label, _, text = line.partition(" ")
        if label not in ("0", "1"):
            raise together.wrong(number, "'0 phrase' or '1 phrase'", line)
        rows.append((text, "pos" if label == "1" else "neg"))
    return {"all": Documents(*_columns(rows))}


def read_trec(source: Path) -> dict[str, Documents]:
    """train_5500.label and TREC_10.label: lines `COARSE:fine question`; the coarse label is kept."""
    files = read_named(source, {"train": "train_5500.label", "test": "TREC_10.label"})
    return {part: _questions(file) for part, file in files.items()}


def read_snippets(source: Path) -> dict[str, Documents]:
    """train.txt and test.txt: the words of a snippet, then its label."""
    files = read_named(source, {"train": "train.txt", "test": "test.txt"})
    parts = {}
    for part, file in files.items():
        rows = []
        for number, line in enumerate(file.lines(), start=1):
            text, space, label = line.strip().rpartition(" ")
            if not space:
                raise file.wrong(number, "words and a label after them", line)
            rows.append((text, label))
        parts[part] = Documents(*_columns(rows))
    return parts


def _questions(file: File) -> Documents:
    rows = []
    for number, line in enumerate(file.lines("latin-1"), start=1):
        label, space, text = line.partition(" ")
        coarse, colon, _ = label.partition(":")
        if not (space and colon and coarse in _KINDS):
            raise file.wrong(number, f"'LABEL:fine question' with one of {', '.join(_KINDS)}", line)
        rows.append((text, coarse))
    return Documents(*_columns(rows))


def _file_a_class(source: Path, names: dict[str, str]) -> dict[str, Documents]:
    rows = []
    for label, file in sorted(read_named(source, names).items()):
        rows += [(line.strip(), label) for line in file.lines(errors="ignore") if line.strip()]
    return {"all": Documents(*_columns(rows))}


def _columns(rows: list[tuple[str, str]]) -> tuple[list[str], list[str]]:
    return [text for text, _ in rows], [label for _, label in rows]
