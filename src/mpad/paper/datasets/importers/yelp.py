"""Tang's Yelp 2013: lines `user<TAB><TAB>product<TAB><TAB>stars<TAB><TAB>review`, `<sssss>` between sentences.

Words seen fewer than 6 times in the training and development parts become UNK, as in the paper. Reviews are kept as
Kim's words with a full stop after each sentence, which every tokenizer here reads as its end and none as a word.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from mpad.data.readers import Documents
from mpad.paper.datasets.importers.source import File, read_named
from mpad.text.tokenizer import KimTokenizer

_RARE = 6
_FIELDS = 4


def read(source: Path) -> dict[str, Documents]:
    """Give the training, development and test part."""
    names = {part: f"yelp-2013-{part}.txt.ss" for part in ("train", "dev", "test")}
    rows = {part: list(_rows(file)) for part, file in read_named(source, names).items()}
    seen = Counter(
        word for part in ("train", "dev") for _, sentences in rows[part] for words in sentences for word in words
    )
    kept = {word for word, count in seen.items() if count >= _RARE}
    return {
        part: Documents([_text(sentences, kept) for _, sentences in result], [stars for stars, _ in result])
        for part, result in rows.items()
    }


def _rows(file: File) -> Iterator[tuple[str, list[list[str]]]]:
    tokenizer = KimTokenizer()
    for number, line in enumerate(file.lines(), start=1):
        fields = line.split("\t\t")
        if len(fields) != _FIELDS or fields[2].strip() not in tuple("12345"):
            raise file.wrong(number, "user, product, stars from 1 to 5 and review, with two tabs between", line)
        yield fields[2].strip(), [tokenizer.words(sentence) for sentence in fields[3].split("<sssss>")]


def _text(sentences: list[list[str]], kept: set[str]) -> str:
    return " ".join(" ".join(word if word in kept else "UNK" for word in words) + " ." for words in sentences if words)
