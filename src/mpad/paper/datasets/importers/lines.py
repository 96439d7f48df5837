"""Distributions with a document per line: a file per class (Polarity, Subjectivity, MPQA), or the label in the line."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from mpad.data.readers import Documents
from mpad.paper.datasets.dataset import as_documents
from mpad.paper.datasets.importers.source import File, read_files, read_named
from mpad.text.tokenizer import KimTokenizer

_KINDS = ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM")  # of questions
_RARE = 6


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
        rows.append(("pos" if label == "1" else "neg", text))
    return {"all": as_documents(rows)}


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
            rows.append((label, text))
        parts[part] = as_documents(rows)
    return parts


def read_yelp2013(source: Path) -> dict[str, Documents]:
    """yelp-2013-*.txt.ss: `user<TAB><TAB>product<TAB><TAB>stars<TAB><TAB>review`, `<sssss>` between sentences.

    Words seen fewer than 6 times in the training and development parts become UNK, as in the paper. Reviews are kept as
    Kim's words with a full stop after each sentence, which every tokenizer here reads as its end and none as a word.
    """
    names = {part: f"yelp-2013-{part}.txt.ss" for part in ("train", "dev", "test")}
    rows = {part: list(_reviews(file)) for part, file in read_named(source, names).items()}
    seen = Counter(
        word for part in ("train", "dev") for _, sentences in rows[part] for words in sentences for word in words
    )
    kept = {word for word, count in seen.items() if count >= _RARE}
    return {
        part: as_documents((stars, _known_words(sentences, kept)) for stars, sentences in result)
        for part, result in rows.items()
    }


def _questions(file: File) -> Documents:
    rows = []
    for number, line in enumerate(file.lines("latin-1"), start=1):
        label, space, text = line.partition(" ")
        coarse, colon, _ = label.partition(":")
        if not (space and colon and coarse in _KINDS):
            raise file.wrong(number, f"'LABEL:fine question' with one of {', '.join(_KINDS)}", line)
        rows.append((coarse, text))
    return as_documents(rows)


def _file_a_class(source: Path, names: dict[str, str]) -> dict[str, Documents]:
    rows = []
    for label, file in sorted(read_named(source, names).items()):
        rows += [(label, line.strip()) for line in file.lines(errors="ignore") if line.strip()]
    return {"all": as_documents(rows)}


def _reviews(file: File) -> Iterator[tuple[str, list[list[str]]]]:
    tokenizer = KimTokenizer()
    for number, line in enumerate(file.lines(), start=1):
        fields = line.split("\t\t")
        if len(fields) != 4 or fields[2].strip() not in tuple("12345"):
            raise file.wrong(number, "user, product, stars from 1 to 5 and review, with two tabs between", line)
        yield fields[2].strip(), [tokenizer.words(sentence) for sentence in fields[3].split("<sssss>")]


def _known_words(sentences: list[list[str]], kept: set[str]) -> str:
    return " ".join(" ".join(word if word in kept else "UNK" for word in words) + " ." for words in sentences if words)
