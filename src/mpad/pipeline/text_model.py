"""Text → predictions as one object: the result of training, the input of explanations, the content of a folder."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

from mpad.data.labels import Labels, rightness
from mpad.errors import InputError
from mpad.inference.answer import Answer, join
from mpad.network import Network, Output
from mpad.text.tokenizer import Tokenizer
from mpad.text.vocabulary import EncodedCorpus, Vocabulary
from mpad.training.task import Corpus, in_batches


class TextModel(ABC):
    """Trained network with everything it needs to read raw text."""

    kind: str  # the name by which its folder tells what it is
    tokenizer: Tokenizer
    vocabulary: Vocabulary
    network: Any  # a Network
    labels: Labels

    @abstractmethod
    def packed(self, corpus: EncodedCorpus, texts: Sequence[str]) -> Any:
        """Return documents as the network reads them, from ids and their texts."""

    @abstractmethod
    def tensors(self, packed: Any, device: torch.device) -> Corpus:
        """Return packed documents on a device, to cut batches from."""

    def pack(self, texts: Sequence[str]) -> Any:
        """Return texts as the network reads them."""
        return self.packed(self.vocabulary.encode(texts, self.tokenizer, self.network.by_sentence), texts)

    def packs(self, texts: Sequence[str]) -> Iterator[Any]:
        """Yield texts as the network reads them, in parts that fit the spare rows."""
        parts = self.vocabulary.encode_parts(texts, self.tokenizer, self.network.by_sentence)
        return (self.packed(corpus, part) for part, corpus in parts)

    @property
    def device(self) -> torch.device:
        """Device of the network."""
        network: Network = self.network
        return network.vectors.device

    def with_network(self, network: Network) -> Self:
        """Return the model with another network."""
        return replace(self, network=network)  # type: ignore[type-var] # subclasses are dataclasses

    def answer(self, packed: Any) -> Answer:
        """Return logits, document vectors and attention of packed documents, in their order."""
        return self.answer_by_torch(packed)

    @torch.no_grad()
    def answer_by_torch(self, packed: Any) -> Answer:
        """Return the same, computed by torch."""
        self.network.eval()
        corpus = self.tensors(packed, self.device)
        everything = torch.arange(len(corpus), device=self.device)
        run = self._runner(packed)
        return join([_as_answer(run(batch)) for batch in in_batches(corpus, everything)])

    def _runner(self, packed: Any) -> Callable[[Any], Output]:
        """Return a function that runs the network on batches of this packed corpus."""
        network: Network = self.network
        return network

    @torch.no_grad()
    def network_logits(self, corpus: Corpus, documents: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the network's logits for some documents of a corpus on its device: (documents, n_classes)."""
        self.network.eval()
        chosen = torch.from_numpy(documents).to(self.device)
        if not len(documents):
            return np.zeros((0, len(self.labels)), np.float32)
        logits = [self.network(batch).logits for batch in in_batches(corpus, chosen)]
        return np.asarray(torch.cat(logits).float().cpu().numpy())

    def accuracy(self, packed: Any, targets: NDArray[Any], documents: NDArray[np.int64]) -> float:
        """Return the share of correct documents; for multi-label data, of correct single decisions."""
        return float(rightness(self.answer(packed).logits[documents], targets[documents]).mean())

    def logits(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return logits: (n_texts, n_classes)."""
        if not len(texts):
            return np.zeros((0, len(self.labels)), np.float32)
        return np.concatenate([self.answer(packed).logits for packed in self.packs(texts)])

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return document vectors, as the last layer sees them: (n_texts, width)."""
        if not len(texts):
            return self.vectors([""])[:0]
        return np.concatenate([self.answer(packed).vectors for packed in self.packs(texts)])

    def member_probabilities(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return probabilities of each member of an ensemble: (members, n_texts, n_classes)."""
        answers = [self.answer(packed).member_logits for packed in self.packs(texts)]
        each = [members for members in answers if members is not None]
        if not each:
            raise InputError("this model is one network; fit it with members=5, say, to see how far members differ")
        return np.stack([self.labels.probabilities(logits) for logits in np.concatenate(each, axis=1)])

    def probabilities(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return probabilities: (n_texts, n_classes)."""
        return self.labels.probabilities(self.logits(texts))

    def summary(self) -> dict[str, Any]:
        """Return facts about the model, for people."""
        network: Network = self.network
        return {
            "model": self.kind,
            "classes": [str(label) for label in self.labels.classes],
            "multilabel": self.labels.multilabel,
            "words": len(self.vocabulary),
            "words seen in training": self.vocabulary.seen,
            "vector width": network.config.vector_width,
            "vectors": "learnt" if network.config.learn_vectors else "fixed",
            "parameters": sum(parameter.numel() for parameter in network.parameters()),
            "tokenizer": self.tokenizer.name,
        }


def _as_answer(output: Output) -> Answer:
    def array(tensor: torch.Tensor) -> NDArray[np.float32]:
        return np.asarray(tensor.float().cpu().numpy())

    words, sentences, members = output.word_attention, output.sentence_attention, output.member_logits
    return Answer(
        array(output.logits),
        array(output.vectors),
        None if words is None else array(words),
        None if sentences is None else array(sentences),
        None if members is None else array(members),
    )
