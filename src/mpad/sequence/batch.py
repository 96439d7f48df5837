"""Some documents of an encoded corpus → one batch: their words end to end, padded only where a network asks for it."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from mpad.graph.batch import members
from mpad.text.vocabulary import EncodedCorpus


@dataclass(frozen=True)
class Rows:
    """Runs of word ids, or of vectors, as the rows of a tensor, each filled up with zeros to the longest."""

    values: Tensor  # (rows, longest), or (rows, longest, width)
    real: Tensor  # (rows, longest) bool
    length: Tensor  # (rows,) int64


@dataclass(frozen=True)
class WordBatch:
    """Some documents, their words in order."""

    words: Tensor  # (n_words,) int64, word ids, end to end
    length: Tensor  # (n_documents,) int64, words of each document
    sentence_length: Tensor  # (n_sentences,) int64
    sentence_count: Tensor  # (n_documents,) int64; a document without words has one empty sentence

    @property
    def n_documents(self) -> int:
        """Documents in the batch."""
        return self.length.shape[0]

    @property
    def owner(self) -> Tensor:
        """Document of each word: (n_words,)."""
        return torch.repeat_interleave(self.length)

    def documents(self, least: int = 1) -> Rows:
        """A row a document, at least so many words wide."""
        return pad(self.words, self.length, least)

    def sentences(self, least: int = 1) -> Rows:
        """A row a sentence."""
        return pad(self.words, self.sentence_length, least)


def pad(flat: Tensor, length: Tensor, least: int = 1) -> Rows:
    """Cut values that stand end to end into rows of these lengths."""
    longest = max(int(length.max()) if length.numel() else 0, least)
    real = torch.arange(longest, device=flat.device) < length[:, None]
    values = flat.new_zeros(*real.shape, *flat.shape[1:])
    values[real] = flat
    return Rows(values, real, length)


class WordTensors:
    """An encoded corpus on a device."""

    def __init__(self, corpus: EncodedCorpus, device: torch.device | str = "cpu") -> None:
        def tensor(array: np.ndarray) -> Tensor:
            return torch.from_numpy(np.ascontiguousarray(array)).to(device)

        self.device = torch.device(device)
        self._words = tensor(corpus.ids)
        starts, documents = tensor(corpus.sentence_start), tensor(corpus.document_start)
        self._sentence_length = starts.diff()
        self._first_sentence, self._n_sentences = documents[:-1], documents.diff()
        self._first_word, self._n_words = starts[documents[:-1]], starts[documents].diff()

    def __len__(self) -> int:
        return self._first_word.shape[0]

    def document_sizes(self, documents: Tensor) -> Tensor:
        """Words of some documents: (n,) int64."""
        return self._n_words[documents]

    def take(self, documents: Tensor) -> WordBatch:
        """Cut out these documents, in this order."""
        length, count = self._n_words[documents], self._n_sentences[documents]
        words, _ = members(self._first_word[documents], length)
        sentences, _ = members(self._first_sentence[documents], count)
        return WordBatch(self._words[words].long(), length, self._sentence_length[sentences], count)
