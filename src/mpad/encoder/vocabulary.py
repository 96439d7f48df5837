"""The words and pieces of words that an encoder has vectors for, and texts as runs of them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from string import ascii_lowercase, digits

import numpy as np

from mpad.extras import require
from mpad.text.tokenizer import DOCUMENT_END, Tokenizer
from mpad.text.vocabulary import CONTINUED, LONGEST_PIECED, EncodedCorpus, Vocabulary

_LETTERS = ascii_lowercase + digits  # so that every word of them has pieces
LEAST = 3  # occurrences of a word with a vector of its own


def count_words(texts: Sequence[str], tokenizer: Tokenizer) -> Counter[str]:
    """Count the words of texts."""
    counts = Counter(chain.from_iterable(tokenizer.split(texts)))
    del counts[DOCUMENT_END]
    return counts


def learn_pieces(counts: Mapping[str, int], n_words: int, n_pieces: int) -> Vocabulary:
    """Return the most frequent words, then the pieces (WordPiece) that other words are composed of."""
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    words = [word for word in ranked if counts[word] >= LEAST and len(word) <= LONGEST_PIECED][:n_words]
    library = require("tokenizers", extra="pretrain")
    model = library.Tokenizer(library.models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=LONGEST_PIECED))
    model.pre_tokenizer = library.pre_tokenizers.WhitespaceSplit()
    trainer = library.trainers.WordPieceTrainer(vocab_size=n_pieces, show_progress=False, limit_alphabet=200)
    # A word counts by the square root of its frequency: pieces are for rare words.
    repeated = (" ".join([word] * int(np.sqrt(counts[word]))) for word in ranked if len(word) <= LONGEST_PIECED)
    model.train_from_iterator(repeated, trainer)
    vocabulary = model.get_vocab()
    pieces = [*sorted(vocabulary, key=vocabulary.get), *_LETTERS, *(CONTINUED + letter for letter in _LETTERS)]
    return Vocabulary(words, seen=len(words)).with_words(pieces)


def encode_pieces(vocabulary: Vocabulary, texts: Sequence[str], tokenizer: Tokenizer) -> EncodedCorpus:
    """Turn texts into ids; a word without a vector of its own becomes its pieces, one after another."""
    known: dict[str, tuple[int, ...]] = {}
    ids: list[int] = []
    ends = [0]
    for word in chain.from_iterable(tokenizer.split(texts)):
        if word == DOCUMENT_END:
            ends.append(len(ids))
            continue
        own = known.get(word)
        if own is None:
            own = known[word] = (vocabulary.id(word),) if word in vocabulary else vocabulary.pieces(word)
        ids.extend(own)
    return EncodedCorpus(np.array(ids, np.int32), np.array(ends, np.int64), np.arange(len(ends), dtype=np.int64))


def spelling(word: str) -> str:
    """Return a word or piece as a teacher reads it."""
    return word.removeprefix(CONTINUED).lstrip("\\")
