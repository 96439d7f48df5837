"""Checks of documents and labels for mistakes that would spoil a model.

`fit` warns of problems that it notices (`DataWarning`) and rejects unusable data; `mpad data check` lists everything.
"""

import unicodedata
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpad.data.equal_texts import near_copies, text_key
from mpad.data.labels import Labels, as_lists
from mpad.errors import DataWarning, InputError
from mpad.text.tokenizer import AUTO, KimTokenizer, Tokenizer, UnicodeTokenizer, as_tokenizer
from mpad.text.vocabulary import EncodedCorpus

_MISSING = frozenset({"inf", "-inf", "nan", "none", "null", "na", "n/a", "<na>", "nat", "undefined"})
_FEW = 5  # documents of a class
_MANY_CLASSES = 20
_MOST_CLASSES = 30  # classes listed with their counts
_SAMPLE = 2_000  # documents whose letters are inspected
_LOST = 0.02  # share of letters that may be dropped without a warning
_FUNCTION_WORDS = {
    "English": "the and of to is that with for was are this not but have you from i it in my do a as be on we so at an "
    "our them they he she his her were what who will would can just all if about out up has had by or me your no more",
    "German": "der die und das ist nicht mit den von zu ein eine auf auch sich dem",
    "French": "le les et des est une que dans pour pas qui sur avec au plus du",
    "Spanish": "el los y las que en una por con para del es se su como no",
    "Italian": "il di che è una per non sono con della gli del anche nel più si",
    "Portuguese": "o os e que uma para não com do da em no mais se como dos",
    "Dutch": "de het een van en niet dat op te zijn met voor maar ook aan er",
    "Swedish": "och att det är som en på inte för med av den till har jag de",
    "Polish": "i w nie na że się z jest do to jak ale za od po tym",
    "Turkish": "ve bir bu için ile çok da de ne gibi daha ama var en mi olarak",
    "Russian": "и в не на что я с он как это по но из у за то",
    "Ukrainian": "і в не на що я з він як це по але та у за до",
}


@dataclass(frozen=True)
class Finding:
    """One fact or problem found in the data."""

    what: str
    number: int
    example: str = ""
    cure: str = ""


# ── Warnings and errors of fit ──


def warn_of_labels(labels: Labels, y: NDArray[Any]) -> None:
    """Reject labels that are measurements; warn of labels that look like mistakes."""
    if labels.multilabel:
        return
    classes = [str(label) for label in labels.classes.tolist()]
    if len(classes) >= _MANY_CLASSES and 2 * len(classes) > len(y) and _are_measurements(classes):
        raise InputError(
            f"y holds {len(classes)} different numbers in {len(y):,} documents, such as {classes[0]} and {classes[1]}: "
            "that is a measurement, not a class; cut it into a few classes, or name another column as the label"
        )
    for finding in label_findings([str(label) for label in y.tolist()]):
        if finding.what != _SMALL:
            _warn(f"{finding.what}: {finding.example}; {finding.cure}")


def no_words(documents: int, why: str = "all texts are empty") -> InputError:
    """Return the error for a corpus without words."""
    return InputError(f"not one word is left of any of the {documents:,} documents: {why}")


def warn_of_words(texts: Sequence[str], corpus: EncodedCorpus, tokenizer: Tokenizer) -> None:
    """Reject a corpus without words; warn if a tokenizer drops whole documents or much of a script."""
    empty = np.flatnonzero(np.diff(corpus.sentence_start[corpus.document_start]) == 0).tolist()
    with_text = [number for number in empty if texts[number].strip()]
    scripts = Counter(script for number in with_text[:_SAMPLE] for script in scripts_of(texts[number]))
    unread = ", ".join(script for script, _ in scripts.most_common(3))
    cure = "tokenizer='unicode-punctuation' (--tokenizer unicode-punctuation) reads every script"
    if texts and len(empty) == len(texts):
        dropped = f"the tokenizer '{tokenizer.name}' drops {unread}: {cure}"
        raise no_words(len(texts), dropped) if unread else no_words(len(texts))
    if unread:
        _warn(f"{len(with_text):,} documents are left without a word: '{tokenizer.name}' drops {unread}; {cure}")
        return
    lost = _lost_letters(texts) if isinstance(tokenizer, KimTokenizer) else 0.0
    if lost > _LOST:
        _warn(
            f"'{tokenizer.name}' drops the {100 * lost:.0f} % of letters that are not ASCII ('schön' → 'sch n'); {cure}"
        )


def warn_of_leak(texts: Sequence[str], groups: NDArray[Any], held: NDArray[np.int64]) -> None:
    """Warn of validation documents that are also training documents."""
    trained = np.ones(len(texts), bool)
    trained[held] = False
    both = held[np.isin(groups[held], groups[trained])]
    if len(both):
        _warn(
            f"{len(both):,} of {len(held):,} validation documents are also training documents, so scores on them are "
            f"too high: {_shorten(texts[int(both[0])])!r}; remove them from one side"
        )


def _warn(message: str) -> None:
    warnings.warn(message, DataWarning, stacklevel=4)


def _are_measurements(classes: Sequence[str]) -> bool:
    """Return whether all classes are numbers, and some have decimals."""
    try:
        return any(float(label) != int(float(label)) for label in classes)
    except (ValueError, OverflowError):
        return False


def _lost_letters(texts: Sequence[str]) -> float:
    sample = texts[:: max(1, len(texts) // _SAMPLE)]
    letters = sum(character.isalpha() for text in sample for character in text[:2000])
    lost = sum(c.isalpha() and not c.isascii() for text in sample if not text.isascii() for c in text[:2000])
    return lost / max(letters, 1)


# ── Findings of `mpad data check` ──


def find_problems(
    texts: Sequence[str], labels: Sequence[Any] | None = None, unlabelled: Sequence[str] = ()
) -> list[Finding]:
    """Describe documents: counts, lengths, languages, and what would spoil a model.

    Parameters
    ----------
    texts : sequence of str
        The documents.
    labels : sequence, optional
        A label per document, or a list of labels each.
    unlabelled : sequence of str, optional
        Places of rows without a label, as `read_documents` collects them; they are not among the texts.

    Returns
    -------
    list of Finding
        Facts and problems, each with an example and what to do.

    """
    found = [Finding("documents", len(texts))]
    if unlabelled:
        where = ", ".join(unlabelled[:3]) + (" …" if len(unlabelled) > 3 else "")
        cure = "label these rows or drop them: fit refuses them, and nothing below counts them"
        found.append(Finding("documents without a label", len(unlabelled), where, cure))
    if labels is not None:
        classes = [name for own in as_lists(labels) for name in own]
        found += [Finding("classes", len(set(classes))), *class_counts(labels), *label_findings(classes)]
    return [*found, *lengths(texts), *text_findings(texts, labels), *kinds_of_text(texts)]


_SMALL = f"classes with fewer than {_FEW} documents"


def label_findings(labels: Sequence[str]) -> Iterator[Finding]:
    """Report problems of labels."""
    counts = Counter(labels)
    alike: dict[str, list[str]] = defaultdict(list)
    for label in counts:
        alike[_normalize(label)].append(label)
    for group in alike.values():
        if len(group) > 1:
            shown = ", ".join(repr(label) for label in sorted(group))
            yield Finding("labels that hardly differ (spaces, capitals)", len(group), shown, "write them alike")
    missing = [label for label in counts if label.strip().casefold() in _MISSING]
    if missing:
        number = sum(counts[label] for label in missing)
        shown = ", ".join(repr(label) for label in missing)
        yield Finding("labels that look like missing ones", number, shown, "drop those rows or label them")
    if len(counts) >= _MANY_CLASSES and 2 * len(counts) > len(labels):
        shown = f"{len(counts):,} classes in {len(labels):,} documents"
        yield Finding("nearly as many classes as documents", len(counts), shown, "is this the column of labels?")
    elif len(counts) >= _MANY_CLASSES and _are_measurements(list(counts)):
        yield Finding("labels that look like measurements", len(counts), next(iter(counts)), "cut them into classes")
    for sign in ";|":
        parts = [{part.strip() for part in label.split(sign) if part.strip()} for label in counts]
        often = Counter(part for own in parts for part in own)
        several = [label for label, own in zip(counts, parts, strict=True) if len(own) > 1]
        if len(several) > 1 and max(often.values()) > 1:
            cure = f"--separator '{sign}' (lists of labels in Python), if documents have several"
            yield Finding(f"labels that look like several, with '{sign}' between them", len(several), several[0], cure)
    small = [label for label, count in counts.items() if count < _FEW]
    if small:
        shown = ", ".join(f"{label!r} ({counts[label]})" for label in small[:5])
        yield Finding(_SMALL, len(small), shown, "add documents, or join classes")


def _normalize(label: str) -> str:
    """Normalize spaces, case, zero-width marks and Unicode forms of a label."""
    seen = "".join(c for c in unicodedata.normalize("NFKC", label) if unicodedata.category(c) not in ("Cf", "Cc"))
    return " ".join(seen.split()).casefold()


def class_counts(labels: Sequence[Any]) -> Iterator[Finding]:
    """Count the documents of the largest classes."""
    counts = Counter(name for own in as_lists(labels) for name in own)
    for name, number in counts.most_common(_MOST_CLASSES):
        yield Finding(f"class: {name}", number, f"{100 * number / len(labels):.1f} % of the documents")
    if len(counts) > _MOST_CLASSES:
        yield Finding("further classes", len(counts) - _MOST_CLASSES)


def lengths(texts: Sequence[str]) -> Iterator[Finding]:
    """Report the lengths of documents in words."""
    words = np.array([len(text.split()) for text in texts])
    if len(words):
        quarter, three = np.percentile(words, [25, 75]).astype(int).tolist()
        yield Finding("words per document, median", int(np.median(words)), f"half have {quarter} to {three}")
        yield Finding("words of the longest document", int(words.max()), _shorten(texts[int(words.argmax())]))


def text_findings(texts: Sequence[str], labels: Sequence[Any] | None) -> Iterator[Finding]:
    """Report problems of texts, and of texts with their labels."""
    keys = [text_key(text) for text in texts]
    first: dict[str, int] = {}
    repeats = [number for number, key in enumerate(keys) if key and first.setdefault(key, number) != number]
    if repeats:
        yield Finding("documents that repeat an earlier text", len(repeats), _shorten(texts[repeats[0]]), "drop them")
    if labels is not None:
        by_text: dict[str, set[str]] = defaultdict(set)
        for key, label in zip(keys, labels, strict=True):
            by_text[key].add(str(label))
        mixed = [key for key, own in by_text.items() if key and len(own) > 1]
        if mixed:
            yield Finding(
                "texts with more than one label", len(mixed), _shorten(texts[first[mixed[0]]]), "decide for one"
            )
    near = near_copies(texts)
    if near:
        number, other = near[0]
        example = f"{_shorten(texts[number])} / {_shorten(texts[other])}"
        cure = "keep copies of one text on one side of a split"
        yield Finding("documents that nearly repeat an earlier text", len(near), example, cure)
    empty = [number for number, text in enumerate(texts) if not text.strip()]
    if empty:
        yield Finding("empty documents", len(empty), f"row {empty[0] + 1}", "drop them")
    tokenizer = as_tokenizer(AUTO, texts)  # as fit does
    dropped = [number for number, text in enumerate(texts) if text.strip() and not tokenizer.words(text)]
    if dropped:
        cure = "--tokenizer unicode-punctuation" if tokenizer.name == "kim" else "drop them"
        what = f"documents of which the tokenizer '{tokenizer.name}' leaves no word"
        yield Finding(what, len(dropped), _shorten(texts[dropped[0]]), cure)


def leaks(training: Sequence[str], test: Sequence[str]) -> Iterator[Finding]:
    """Report test documents that are also in the training file."""
    known = {text_key(text) for text in training}
    both = [text for text in test if text_key(text) and text_key(text) in known]
    if both:
        yield Finding("documents of the second file that the first has too", len(both), _shorten(both[0]), "drop them")


def kinds_of_text(texts: Sequence[str]) -> Iterator[Finding]:
    """Report scripts, and languages by their function words, of a sample of documents."""
    sample = texts[:: max(1, len(texts) // _SAMPLE)]
    for script, number in Counter(script for text in sample for script in scripts_of(text)).most_common(6):
        yield Finding(f"script: {script}", number, f"of {len(sample):,} documents looked at")
    for language, number in Counter(language_of(text) for text in sample).most_common(6):
        yield Finding(f"language: {language}", number, f"of {len(sample):,} documents looked at")


def scripts_of(text: str) -> set[str]:
    """Return the Unicode names of the scripts of a text's letters, such as LATIN, CYRILLIC or CJK."""
    return {script for character in set(text[:2000]) if (script := _script(character))}


def _script(character: str) -> str:
    if not character.isalpha() and unicodedata.category(character) != "So":
        return ""
    name = unicodedata.name(character, "UNNAMED").partition(" ")[0]
    return name.partition("-")[0] if character.isalpha() else "symbols and emoji"


def language_of(text: str) -> str:
    """Return the language with most function words in a text; "unknown" if they are few, or tied."""
    words = Counter(word.lower() for word in UnicodeTokenizer().words(text[:2000]))
    hits = {name: sum(words[word] for word in own.split()) for name, own in _FUNCTION_WORDS.items()}
    distinct = {name: sum(words[word] > 0 for word in own.split()) for name, own in _FUNCTION_WORDS.items()}
    first, second = sorted(hits, key=lambda name: -hits[name])[:2]
    enough = hits[first] >= 2 and distinct[first] >= 2 and 12 * hits[first] >= words.total()
    return first if enough and hits[first] > hits[second] else "unknown"


def _shorten(text: str) -> str:
    shown = " ".join(text.split())
    return shown if len(shown) <= 60 else shown[:59] + "…"
