r"""Text → words, with sentences and character offsets.

A tokenizer works on many documents at once: it gives the words of all of them in one flat list, in which
the markers DOCUMENT_END and SENTENCE_END stand where documents and sentences end. That way the paper's
tokenizer is a handful of C calls for thousands of documents, and no list per document is ever made.

The paper's tokenizer is Kim's `clean_str` (2014), to the letter: it keeps `A-Za-z0-9(),!?'` and the
backtick, splits `'s 've n't 're 'd 'll` off, sets `, ! ( ) ?` apart and lower-cases last. Its replacement
strings leave a backslash before `( ) ?`, so these words read `\(`, `\)` and `\?`, here as there.
"""

import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from unicodedata import category, normalize

from mpad.errors import InputError

DOCUMENT_END = "\x00"
SENTENCE_END = "\x01"
_CHUNK = 2048  # documents cleaned together: the text stays in cache, the word list stays small

# Sentences as the hierarchical variants read them, and were trained with. One ends at . ! ? ; before white space (so
# "3.14" and "e.g.x" hold together), at the full stops of Chinese, Japanese and Hindi, and at a blank line. The mark
# stays with the sentence that it ends.
SENTENCE_BOUNDARY = re.compile(r"""[.!?;]+["'”’»)\]]*(?=[\s\x00])|[。！？।]+["'”’」』]*|\n[ \t\r]*\n""")

# Sentences as people read them, for explanations of the flat variant: not at ";", nor at the point of "4 . 5".
READABLE_BOUNDARY = re.compile(
    r"""(?:(?<!\d[ ])|(?![.]\s\d))[.!?]+["'”’»)\]]*(?=[\s\x00])|[。！？।]+["'”’」』]*|\n[ \t\r]*\n"""
)


@dataclass(frozen=True)
class Tokens:
    """The words of one document, each with its place in the text."""

    words: list[str]
    spans: list[tuple[int, int]]  # text[start:end] is where the word stands
    sentences: list[int]  # number of the sentence that holds the word


class Tokenizer(ABC):
    """Turns documents into words; subclasses say how."""

    name: str

    def split(
        self, texts: Sequence[str], sentences: bool = False, boundary: re.Pattern[str] = SENTENCE_BOUNDARY
    ) -> Iterator[list[str]]:
        """Give the words of the documents, chunk by chunk, each document closed by DOCUMENT_END."""
        return map(self._split, self.joined(texts, sentences, boundary))

    def joined(
        self, texts: Sequence[str], sentences: bool = False, boundary: re.Pattern[str] = SENTENCE_BOUNDARY
    ) -> Iterator[str]:
        """Put documents end to end, chunk by chunk, with their markers."""
        for start in range(0, len(texts), _CHUNK):
            chunk = texts[start : start + _CHUNK]
            joined = DOCUMENT_END.join(chunk) + DOCUMENT_END
            if joined.count(DOCUMENT_END) != len(chunk) or SENTENCE_END in joined:
                joined = "".join(_without_markers(text) + DOCUMENT_END for text in chunk)
            yield boundary.sub(rf"\g<0>{SENTENCE_END}", joined) if sentences else joined

    def words(self, text: str) -> list[str]:
        """Give the words of one document."""
        return [word for words in self.split([text]) for word in words if word != DOCUMENT_END]

    def trace(self, text: str, readable: bool = False) -> Tokens:
        """Return the words of one document with their offsets and sentences, those that people read if `readable`."""
        words: list[str] = []
        sentences: list[int] = []
        number = 0
        boundary = READABLE_BOUNDARY if readable else SENTENCE_BOUNDARY
        for word in next(self.split([text], sentences=True, boundary=boundary)):
            if word == SENTENCE_END or word == DOCUMENT_END:
                number = sentences[-1] + 1 if sentences else 0  # empty sentences are not counted
            else:
                words.append(word)
                sentences.append(number)
        return Tokens(words, self._locate(text, words), sentences)

    def spans(self, text: str, sentences: bool = False) -> list[tuple[int, int]]:
        """Where each word of one document stands in the text, in the order in which `split` gives them."""
        marked = [word for words in self.split([text], sentences) for word in words]
        return self._locate(text, [word for word in marked if word != DOCUMENT_END and word != SENTENCE_END])

    @abstractmethod
    def _split(self, joined: str) -> list[str]:
        """Words of a text in which the markers must survive as words of their own."""

    @abstractmethod
    def _locate(self, text: str, words: list[str]) -> list[tuple[int, int]]:
        """Where each word stands in the text."""


def _without_markers(text: str) -> str:
    return text.replace(DOCUMENT_END, " ").replace(SENTENCE_END, " ")


KIM_KEPT = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789(),!?'`\x00\x01")
_CLEAN = bytes(byte if byte in KIM_KEPT else 32 for byte in range(256))
KIM_SET_APART = [
    *[(ending, b" " + ending) for ending in (b"'s", b"'ve", b"n't", b"'re", b"'d", b"'ll")],
    *[(mark, b" " + mark + b" ") for mark in (b",", b"!")],
    *[(mark, b" \\" + mark + b" ") for mark in (b"(", b")", b"?")],
    *[(marker.encode(), b" " + marker.encode() + b" ") for marker in (DOCUMENT_END, SENTENCE_END)],
]


class KimTokenizer(Tokenizer):
    """Kim's `clean_str`; with `lower=False` case is kept, as the paper seems to have done on IMDB and TREC."""

    def __init__(self, lower: bool = True) -> None:
        self.lower = lower
        self.name = "kim" if lower else "kim-cased"

    def _split(self, joined: str) -> list[str]:
        # A character outside ASCII becomes two to four spaces instead of one; splitting folds them.
        data = joined.encode("utf-8", "surrogatepass").translate(_CLEAN)
        for old, new in KIM_SET_APART:
            data = data.replace(old, new)
        return (data.lower() if self.lower else data).decode("ascii").split()

    def _locate(self, text: str, words: list[str]) -> list[tuple[int, int]]:
        # Words are ASCII and keep their order, with only dropped characters between them: the next
        # occurrence of each is the word itself.
        folded = "".join(map(_ascii_lower, text)) if self.lower else text
        spans, cursor = [], 0
        for word in words:
            start = folded.index(word.removeprefix("\\"), cursor)
            cursor = start + len(word.removeprefix("\\"))
            spans.append((start, cursor))
        return spans


def _ascii_lower(character: str) -> str:
    return character.lower() if character.isascii() else character


class UnicodeTokenizer(Tokenizer):
    """Words of any script: letters, digits and their marks, lower-cased, accents in one form (NFC); `!`, `?`; emoji.

    Scripts without spaces between words are cut into characters, each with its marks: ideographs, kana, Thai, Lao,
    Khmer, Burmese. Their pairs are the edges of the graph. With `punctuation` commas and parentheses are words too, as
    in Kim's tokenizer, and `_` parts words.
    """

    def __init__(self, punctuation: bool = False) -> None:
        self.name = "unicode-punctuation" if punctuation else "unicode"
        self.pattern = _unicode_words(punctuation)

    def _split(self, joined: str) -> list[str]:
        words = [word.lower() for word in self.pattern.findall(joined)]
        if joined.isascii():
            return words
        return [word if word.isascii() else normalize("NFC", word.translate(ONE_FORM)) for word in words]

    def _locate(self, text: str, words: list[str]) -> list[tuple[int, int]]:
        return [match.span() for match in self.pattern.finditer(_without_markers(text))]


@cache
def _unicode_words(punctuation: bool) -> re.Pattern[str]:
    """What the words of any script look like, markers among them."""
    # Python's \w leaves out combining marks, which would cut Hindi words at every vowel sign.
    marks = "".join(chr(c) for c in range(0x300, 0x20000) if category(chr(c))[0] == "M" and c not in _SELECTORS)
    other = _IDEOGRAPHS + _SPACELESS + _EMOJI + ("_" if punctuation else "")
    letter = f"(?:(?![{other}])[\\w{marks}])"
    cluster = f"[{_IDEOGRAPHS}]|[{_SPACELESS}][{marks}]*"
    one = f"[{_EMOJI}][\ufe0e\ufe0f]?[\U0001f3fb-\U0001f3ff]?"
    emoji = f"[\U0001f1e6-\U0001f1ff]{{2}}|{one}(?:\u200d{one})*"
    alone = "!?！？" + (_PUNCTUATION if punctuation else "")
    return re.compile(f"[{DOCUMENT_END}{SENTENCE_END}]|{emoji}|{letter}+(?:['’]{letter}+)*|{cluster}|[{alone}]")


_IDEOGRAPHS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_SPACELESS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\ua9e0-\ua9ff\uaa60-\uaa7f"
_EMOJI = "\u2600-\u27bf\u2b00-\u2bff\U0001f300-\U0001faff"
_PUNCTUATION = ",()،؛؟，、；（）"
_SELECTORS = frozenset(range(0xFE00, 0xFE10))  # say how a character is drawn
ONE_FORM = {0x2019: "'", **dict.fromkeys(_SELECTORS)}


class CallableTokenizer(Tokenizer):
    """Any function from a text to its words."""

    def __init__(self, function: Callable[[str], Iterable[str]]) -> None:
        self.function = function
        self.name = f"{getattr(function, '__module__', None)}:{getattr(function, '__qualname__', None)}"

    def _split(self, joined: str) -> list[str]:
        words: list[str] = []
        for document in joined.split(DOCUMENT_END)[:-1]:
            for sentence in document.split(SENTENCE_END):
                words += [_checked(word) for word in self._called(sentence)]
                words.append(SENTENCE_END)
            words[-1] = DOCUMENT_END
        return words

    def _called(self, text: str) -> list[str]:
        try:
            return list(self.function(text))
        except Exception as error:
            raise InputError(
                f"the tokenizer '{self.name}' failed on {text[:40]!r}: {type(error).__name__}: {error}"
            ) from error

    def _locate(self, text: str, words: list[str]) -> list[tuple[int, int]]:
        # The function may have changed a word beyond recognition (stemming): it then stands at the cursor,
        # zero characters wide.
        lowered = "".join(c.lower() if len(c.lower()) == 1 else c for c in text)
        spans, cursor = [], 0
        for word in words:
            start = text.find(word, cursor)
            if start < 0:
                start = lowered.find(word.lower(), cursor)
            cursor, end = (cursor, cursor) if start < 0 else (start, start + len(word))
            spans.append((cursor, end))
            cursor = end
        return spans


def _checked(word: object) -> str:
    if not isinstance(word, str):
        raise InputError(
            f"a tokenizer gives the words of a text as strings; this one gave {word!r} ({type(word).__name__})"
        )
    return _without_markers(word)


# By name; those alone may be named by a saved model.
TOKENIZERS: dict[str, Callable[[], Tokenizer]] = {
    "kim": KimTokenizer,
    "kim-cased": lambda: KimTokenizer(lower=False),
    "unicode": UnicodeTokenizer,
    "unicode-punctuation": lambda: UnicodeTokenizer(punctuation=True),
}


AUTO = "auto"  # the name of the choice that hangs on the texts
_SAMPLE, _OTHER, _WITH_EMOJI = (
    2_000,
    1 / 300,
    0.01,
)  # texts looked at; share of letters beyond ASCII, of texts with emoji


def as_tokenizer(
    choice: str | Tokenizer | Callable[[str], Iterable[str]], texts: Sequence[str] | None = None
) -> Tokenizer:
    """Give the tokenizer of that name, or wrap a function as one; "auto" is the one that suits these texts."""
    if isinstance(choice, Tokenizer):
        return choice
    if isinstance(choice, str):
        if choice == AUTO and texts is not None:
            return _suited_to(texts)
        if choice in TOKENIZERS:
            return TOKENIZERS[choice]()
        if ":" in choice:  # module:function, by the caller's own word
            return CallableTokenizer(_imported(choice))
        raise InputError(
            f"no tokenizer '{choice}' (known: {', '.join([AUTO, *(name for name in TOKENIZERS if ':' not in name)])}; "
            "or give a function from a text to its words, or its name as module:function)"
        )
    if callable(choice):
        return CallableTokenizer(choice)
    raise InputError(f"tokenizer must be a name or a function, not {type(choice).__name__}")


def _suited_to(texts: Sequence[str]) -> Tokenizer:
    """Kim's where letters are ASCII, but for a name here and there; else one that reads every script, and emoji."""
    sample = texts[:: max(1, len(texts) // _SAMPLE)]
    others = [text[:2000] for text in sample if not text.isascii()]
    if not others:
        return KimTokenizer()
    letters = sum(sum(map(str.isalpha, text[:2000])) for text in sample)
    beyond = sum(not c.isascii() and category(c)[0] in "LM" for text in others for c in text)
    emoji = re.compile(f"[{_EMOJI}\U0001f1e6-\U0001f1ff]")
    many_emoji = sum(emoji.search(text) is not None for text in others) > _WITH_EMOJI * len(sample)
    return UnicodeTokenizer(punctuation=True) if beyond > _OTHER * letters or many_emoji else KimTokenizer()


def saved_tokenizer(name: str, given: str | Tokenizer | Callable[[str], Iterable[str]] | None) -> Tokenizer:
    """The tokenizer that a saved model names, or the one that the caller hands in.

    A folder's word is never imported: only names in TOKENIZERS count.
    """
    if given is not None:
        return as_tokenizer(given)
    if name not in TOKENIZERS:
        raise InputError(
            f"this model was trained with a tokenizer of its own, '{name[:100]}': hand that in (load(folder, "
            "tokenizer=function) in Python, --tokenizer module:function in a shell)"
        )
    return TOKENIZERS[name]()


def _imported(name: str) -> Callable[[str], Iterable[str]]:
    from importlib import import_module

    module, _, attribute = name.partition(":")
    try:
        result = import_module(module) if module not in sys.modules else sys.modules[module]
        for part in attribute.split("."):
            result = getattr(result, part)
    except (ImportError, AttributeError):
        raise InputError(
            f"the tokenizer '{name}' cannot be imported here: make its module importable, or hand in the function"
        ) from None
    if not callable(result):
        raise InputError(f"the tokenizer '{name}' is {type(result).__name__}, not a function from a text to its words")
    function: Callable[[str], Iterable[str]] = result
    return function
