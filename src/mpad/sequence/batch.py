"""Some documents of an encoded corpus → one batch: their words end to end, padded only where a network asks for it."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from mpad.graph.batch import members
from mpad.text.vocabulary import EncodedCorpus

LONGEST_SENTENCE = 60  # words; what is longer is cut


@dataclass(frozen=True)
class PaddedRows:
    """Runs of word ids, or of vectors, as the rows of a tensor, each filled up with zeros to the longest."""

    values: Tensor  # (rows, longest), or (rows, longest, width)
    real: Tensor  # (rows, longest) bool
    length: Tensor  # (rows,) int64


class SequenceShape(NamedTuple):
    """The static shape of a batch: how much it has room for."""

    words: int  # end to end
    longest: int  # words of a document
    sentences: int
    longest_sentence: int  # in words
    most_sentences: int  # of a document


@dataclass(frozen=True)
class WordBatch:
    """Some documents, their words in order.

    In a batch of static shape the last document is a dummy without length: it owns the words that only fill up.
    """

    words: Tensor  # (n_words,) int64, word ids, end to end
    length: Tensor  # (n_documents,) int64, words of each document
    sentence_length: Tensor  # (n_sentences,) int64
    sentence_count: Tensor  # (n_documents,) int64; a document without words has one empty sentence
    shape: SequenceShape | None = None  # where it is static: nothing waits for the device to say how long things are

    @property
    def n_documents(self) -> int:
        """Documents in the batch."""
        return self.length.shape[0]

    @property
    def owner(self) -> Tensor:
        """Document of each word: (n_words,)."""
        if self.shape is None:
            return torch.repeat_interleave(self.length)
        return owners(self.length, self.words.shape[0]).clamp(max=self.n_documents - 1)

    def documents(self, least: int = 1) -> PaddedRows:
        """A row a document, at least so many words wide."""
        return pad(self.words, self.length, least, self.shape and self.shape.longest)

    def sentences(self, least: int = 1) -> PaddedRows:
        """A row a sentence."""
        return pad(self.words, self.sentence_length, least, self.shape and self.shape.longest_sentence)

    def by_document(self, sentences: Tensor) -> PaddedRows:
        """A row a document of what its sentences have become: (n_sentences, width) → (n_documents, most, width)."""
        return pad(sentences, self.sentence_count, 1, self.shape and self.shape.most_sentences)


def owners(count: Tensor, total: int) -> Tensor:
    """The run that each of `total` places belongs to; the number of runs for those behind the last."""
    return torch.searchsorted(count.cumsum(0), torch.arange(total, device=count.device), right=True)


def pad(flat: Tensor, length: Tensor, least: int = 1, longest: int | None = None) -> PaddedRows:
    """Cut values that stand end to end into rows of these lengths, as wide as the longest unless that is given."""
    if longest is None:
        longest = int(length.max()) if length.numel() else 0
    place = torch.arange(max(longest, least), device=flat.device)
    real = place < length[:, None]
    if not flat.shape[0]:
        return PaddedRows(flat.new_zeros(*real.shape, *flat.shape[1:]), real, length)
    where = (length.cumsum(0) - length)[:, None] + place
    values = flat[where.clamp(max=flat.shape[0] - 1)]
    return PaddedRows(values * real.view(*real.shape, *[1] * (flat.ndim - 1)), real, length)


def cut_sentences(corpus: EncodedCorpus, longest: int = LONGEST_SENTENCE) -> EncodedCorpus:
    """Cut longer sentences of a corpus into runs of nearly equal length.

    Rows of a batch are as wide as its longest sentence, and text without full stops is one sentence.
    """
    length = np.diff(corpus.sentence_start)
    parts = np.maximum(-(-length // longest), 1)
    first = np.concatenate([[0], np.cumsum(parts)])
    sentence = np.repeat(np.arange(len(length)), parts)
    part = np.arange(len(sentence)) - first[sentence]
    starts = corpus.sentence_start[sentence] + part * length[sentence] // parts[sentence]
    ends = np.append(starts, corpus.sentence_start[-1])
    return replace(corpus, sentence_start=ends, document_start=first[corpus.document_start])


class WordTensors:
    """An encoded corpus on a device."""

    def __init__(self, corpus: EncodedCorpus, device: torch.device | str = "cpu") -> None:
        def tensor(array: np.ndarray) -> Tensor:
            return torch.from_numpy(np.ascontiguousarray(array)).to(device)

        self.device = torch.device(device)
        self.words = tensor(corpus.ids)
        starts, documents = tensor(corpus.sentence_start), tensor(corpus.document_start)
        self.sentence_length = starts.diff()
        self.first_sentence, self.n_sentences = documents[:-1], documents.diff()
        self.first_word, self.n_words = starts[documents[:-1]], starts[documents].diff()

    def __len__(self) -> int:
        return self.first_word.shape[0]

    def document_sizes(self, documents: Tensor) -> Tensor:
        """Words of some documents: (n,) int64."""
        return self.n_words[documents]

    def take(self, documents: Tensor) -> WordBatch:
        """Cut out these documents, in this order."""
        length, count = self.n_words[documents], self.n_sentences[documents]
        words, _ = members(self.first_word[documents], length)
        sentences, _ = members(self.first_sentence[documents], count)
        return WordBatch(self.words[words].long(), length, self.sentence_length[sentences], count)
