r"""Text → words, with sentences and character offsets.

A tokenizer works on many documents at once: it returns the words of all of them in one flat list, with the
markers DOCUMENT_END and SENTENCE_END where documents and sentences end. This way the paper's tokenizer is a
handful of C calls for thousands of documents, and no list per document is made.

The paper's tokenizer is exactly Kim's `clean_str` (2014): it keeps `A-Za-z0-9(),!?'` and the
backtick, splits `'s 've n't 're 'd 'll` off, sets `, ! ( ) ?` apart and lower-cases last. Its replacement
strings leave a backslash before `( ) ?`, so these words read `\(`, `\)` and `\?`, as in the original.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pkgutil import resolve_name
from unicodedata import category, normalize

from mpad.errors import InputError

DOCUMENT_END = "\x00"
SENTENCE_END = "\x01"
_CHUNK = 2048  # documents per chunk: the text stays in cache, the word list stays small

# Sentence ends of the hierarchical variants, in training and prediction: . ! ? ; before white space (so "3.14" and
# "e.g.x" are not split), the full stops of Chinese, Japanese and Hindi, and blank lines. The mark belongs to the
# sentence that it ends.
SENTENCE_BOUNDARY = re.compile(r"""[.!?;]+["'”’»)\]]*(?=[\s\x00])|[。！？।]+["'”’」』]*|\n[ \t\r]*\n""")

# Sentence ends in explanations of the flat variant, closer to human reading: not at ";" or the point of "4 . 5".
READABLE_BOUNDARY = re.compile(
    r"""(?:(?<!\d[ ])|(?![.]\s\d))[.!?]+["'”’»)\]]*(?=[\s\x00])|[。！？।]+["'”’」』]*|\n[ \t\r]*\n"""
)


@dataclass(frozen=True)
class Tokens:
    """The words of one document with their offsets and sentences."""

    words: list[str]
    spans: list[tuple[int, int]]  # the word is text[start:end]
    sentences: list[int]  # sentence number of each word


class Tokenizer(ABC):
    """Base class of tokenizers, which turn documents into words."""

    name: str

    def split(
        self, texts: Sequence[str], sentences: bool = False, boundary: re.Pattern[str] = SENTENCE_BOUNDARY
    ) -> Iterator[list[str]]:
        """Yield the words of the documents, chunk by chunk; DOCUMENT_END follows each document."""
        return map(self._split, self.joined(texts, sentences, boundary))

    def joined(
        self, texts: Sequence[str], sentences: bool = False, boundary: re.Pattern[str] = SENTENCE_BOUNDARY
    ) -> Iterator[str]:
        """Yield the documents joined into one text per chunk, with their markers."""
        for start in range(0, len(texts), _CHUNK):
            chunk = texts[start : start + _CHUNK]
            joined = DOCUMENT_END.join(chunk) + DOCUMENT_END
            if joined.count(DOCUMENT_END) != len(chunk) or SENTENCE_END in joined:
                joined = "".join(_remove_markers(text) + DOCUMENT_END for text in chunk)
            yield boundary.sub(rf"\g<0>{SENTENCE_END}", joined) if sentences else joined

    def words(self, text: str) -> list[str]:
        """Return the words of one document."""
        return [word for words in self.split([text]) for word in words if word != DOCUMENT_END]

    def trace(self, text: str, readable: bool = False) -> Tokens:
        """Return the words of one document with offsets and sentences; `readable` selects READABLE_BOUNDARY."""
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
        """Return the (start, end) offsets of each word of one document, in the order of `split`."""
        marked = [word for words in self.split([text], sentences) for word in words]
        return self._locate(text, [word for word in marked if word != DOCUMENT_END and word != SENTENCE_END])

    @abstractmethod
    def _split(self, joined: str) -> list[str]:
        """Split a text into words; markers must survive as words of their own."""

    @abstractmethod
    def _locate(self, text: str, words: list[str]) -> list[tuple[int, int]]:
        """Return the (start, end) offsets of each word."""


def _remove_markers(text: str) -> str:
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
    """Kim's `clean_str`; `lower=False` keeps case, as the paper seems to have done on IMDB and TREC."""

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
        # Words are ASCII and in order, with only dropped characters between them: the next occurrence of
        # each is the word itself.
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
    Khmer, Burmese. Their pairs are the edges of the graph. With `punctuation`, commas and parentheses are words too, as
    in Kim's tokenizer, and `_` separates words.
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
        return [match.span() for match in self.pattern.finditer(_remove_markers(text))]


@cache
def _unicode_words(punctuation: bool) -> re.Pattern[str]:
    """Compile the pattern of words of any script, markers included."""
    # Python's \w excludes combining marks, which would split Hindi words at every vowel sign.
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
_SELECTORS = frozenset(range(0xFE00, 0xFE10))  # variation selectors: glyph choice, not text
ONE_FORM = {0x2019: "'", **dict.fromkeys(_SELECTORS)}


class CallableTokenizer(Tokenizer):
    """A tokenizer made of any function from a text to its words."""

    def __init__(self, function: Callable[[str], Iterable[str]]) -> None:
        self.function = function
        self.name = f"{getattr(function, '__module__', None)}:{getattr(function, '__qualname__', None)}"

    def _split(self, joined: str) -> list[str]:
        words: list[str] = []
        for document in joined.split(DOCUMENT_END)[:-1]:
            for sentence in document.split(SENTENCE_END):
                words += [_check_word(word) for word in self._call(sentence)]
                words.append(SENTENCE_END)
            words[-1] = DOCUMENT_END
        return words

    def _call(self, text: str) -> list[str]:
        try:
            return list(self.function(text))
        except Exception as error:
            raise InputError(
                f"the tokenizer '{self.name}' failed on {text[:40]!r}: {type(error).__name__}: {error}"
            ) from error

    def _locate(self, text: str, words: list[str]) -> list[tuple[int, int]]:
        # A word that the function changed beyond recognition (stemming) is located at the cursor, zero
        # characters wide.
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


def _check_word(word: object) -> str:
    if not isinstance(word, str):
        raise InputError(
            f"a tokenizer gives the words of a text as strings; this one gave {word!r} ({type(word).__name__})"
        )
    return _remove_markers(word)


# A saved model may name only these.
TOKENIZERS: dict[str, Callable[[], Tokenizer]] = {
    "kim": KimTokenizer,
    "kim-cased": lambda: KimTokenizer(lower=False),
    "unicode": UnicodeTokenizer,
    "unicode-punctuation": lambda: UnicodeTokenizer(punctuation=True),
}


AUTO = "auto"  # choose by the texts
_SAMPLE = 2_000  # texts inspected
_OTHER, _WITH_EMOJI = 1 / 300, 0.01  # share of non-ASCII letters, of texts with emoji, that need the Unicode tokenizer


def as_tokenizer(
    choice: str | Tokenizer | Callable[[str], Iterable[str]], texts: Sequence[str] | None = None
) -> Tokenizer:
    """Return a tokenizer by its name, or wrap a function as one; "auto" chooses by the texts."""
    if isinstance(choice, Tokenizer):
        return choice
    if isinstance(choice, str):
        if choice == AUTO and texts is not None:
            return _choose_tokenizer(texts)
        if choice in TOKENIZERS:
            return TOKENIZERS[choice]()
        if ":" in choice:  # module:function, trusted because the caller names it
            return CallableTokenizer(_import_function(choice))
        raise InputError(
            f"no tokenizer '{choice}' (known: {', '.join([AUTO, *(name for name in TOKENIZERS if ':' not in name)])}; "
            "or give a function from a text to its words, or its name as module:function)"
        )
    if callable(choice):
        return CallableTokenizer(choice)
    raise InputError(f"tokenizer must be a name or a function, not {type(choice).__name__}")


def _choose_tokenizer(texts: Sequence[str]) -> Tokenizer:
    """Choose Kim's tokenizer for texts that are nearly all ASCII, else one that reads every script and emoji."""
    sample = texts[:: max(1, len(texts) // _SAMPLE)]
    others = [text[:2000] for text in sample if not text.isascii()]
    if not others:
        return KimTokenizer()
    letters = sum(sum(map(str.isalpha, text[:2000])) for text in sample)
    beyond = sum(not c.isascii() and category(c)[0] in "LM" for text in others for c in text)
    emoji = re.compile(f"[{_EMOJI}\U0001f1e6-\U0001f1ff]")
    many_emoji = sum(emoji.search(text) is not None for text in others) > _WITH_EMOJI * len(sample)
    return UnicodeTokenizer(punctuation=True) if beyond > _OTHER * letters or many_emoji else KimTokenizer()


def saved_tokenizer(name: str, override: str | Tokenizer | Callable[[str], Iterable[str]] | None) -> Tokenizer:
    """Return the tokenizer that a saved model names, or the caller's `override`.

    A name from a folder is never imported: it must be in TOKENIZERS.
    """
    if override is not None:
        return as_tokenizer(override)
    if name not in TOKENIZERS:
        raise InputError(
            f"this model was trained with a tokenizer of its own, '{name[:100]}': hand that in (load(folder, "
            "tokenizer=function) in Python, --tokenizer module:function in a shell)"
        )
    return TOKENIZERS[name]()


def _import_function(name: str) -> Callable[[str], Iterable[str]]:
    try:
        result = resolve_name(name)
    except (ImportError, AttributeError, ValueError):
        raise InputError(
            f"the tokenizer '{name}' cannot be imported here: make its module importable, or hand in the function"
        ) from None
    if not callable(result):
        raise InputError(f"the tokenizer '{name}' is {type(result).__name__}, not a function from a text to its words")
    function: Callable[[str], Iterable[str]] = result
    return function
