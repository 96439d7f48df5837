"""Reuters-21578 in SGML → R8: ModApte split, documents of one topic, the 8 largest topics.

Topics are ranked by all their training documents; those that never stand alone (wheat and corn, always together with
grain) do not count. The text is title and body, letters only and lower-cased, as R8 is passed around.
"""

import html
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from mpad.data.readers import Documents
from mpad.errors import DataFileError
from mpad.paper.datasets.dataset import as_documents
from mpad.paper.datasets.importers.source import File, read_files

_CLASSES = 8
_PARTS = ("train", "test")
_DOCUMENT = re.compile(r"<REUTERS\b([^>]*)>(.*?)</REUTERS>", re.DOTALL)
_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')
_TOPICS = re.compile(r"<TOPICS>(.*?)</TOPICS>", re.DOTALL)
_TOPIC = re.compile(r"<D>(.*?)</D>")
_TITLE = re.compile(r"<TITLE>(.*?)</TITLE>", re.DOTALL)
_BODY = re.compile(r"<BODY>(.*?)</BODY>", re.DOTALL)
_UNPROCESSED = re.compile(r'<TEXT TYPE="UNPROC">(.*?)</TEXT>', re.DOTALL)
_OTHER = re.compile(r"[^a-z]+")


def read_reuters(source: Path) -> dict[str, Documents]:
    """Give the training and the test part."""
    documents = [
        result for file in read_files(source, lambda path: path.suffix == ".sgm") for result in _documents(file)
    ]
    if not documents:
        raise DataFileError(f"{source}: expected files reut2-000.sgm to reut2-021.sgm; found none")
    every = Counter(topic for part, topics, _ in documents if part == "train" for topic in topics)
    single = [(part, topics[0], text) for part, topics, text in documents if len(topics) == 1]
    alone = {(part, topic) for part, topic, _ in single}
    ranked = [topic for topic, _ in every.most_common() if all((part, topic) in alone for part in _PARTS)]
    kept = [row for row in single if row[1] in ranked[:_CLASSES]]
    return {part: as_documents((topic, text) for own, topic, text in kept if own == part) for part in _PARTS}


def _documents(file: File) -> Iterator[tuple[str, list[str], str]]:
    """(part, topics, text) of each document of the ModApte split."""
    content = file.text("latin-1")
    if "<REUTERS" not in content:
        raise file.wrong(2, "<REUTERS …>", content.partition("\n")[2])
    documents = list(_DOCUMENT.finditer(content))
    if len(documents) != content.count("<REUTERS"):
        last = content.count("\n", 0, documents[-1].end()) + 1 if documents else 1
        raise file.wrong(last, "every <REUTERS …> to be closed by </REUTERS>", content[content.rfind("<REUTERS") :])
    for result in documents:
        attributes = dict(_ATTRIBUTE.findall(result.group(1)))
        if "LEWISSPLIT" not in attributes:
            line = content.count("\n", 0, result.start()) + 1
            raise file.wrong(line, '<REUTERS TOPICS="…" LEWISSPLIT="…">', result.group(0))
        part = attributes["LEWISSPLIT"].lower()
        if part in _PARTS and attributes.get("TOPICS") == "YES":
            topics = _TOPIC.findall("".join(_TOPICS.findall(result.group(2))))
            yield part, topics, _text(result.group(2))


def _text(content: str) -> str:
    inside = _TITLE.findall(content) + _BODY.findall(content) or _UNPROCESSED.findall(content)
    return _OTHER.sub(" ", html.unescape(" ".join(inside)).lower()).strip()
