"""A model that reads words in their order, with all that it needs to read raw text."""

from dataclasses import dataclass

import torch

from mpad.labels import Labels
from mpad.models.network import Network
from mpad.sequence.batch import WordTensors
from mpad.text.tokenizer import Tokenizer
from mpad.text.vocabulary import EncodedCorpus, Vocabulary
from mpad.text_model import TextModel


@dataclass(frozen=True)
class SequenceModel(TextModel):
    """A trained network over sequences of words."""

    kind: str
    tokenizer: Tokenizer
    vocabulary: Vocabulary
    network: Network
    labels: Labels

    def packed(self, corpus: EncodedCorpus) -> EncodedCorpus:
        """Ids, as they are."""
        return corpus

    def tensors(self, packed: EncodedCorpus, device: torch.device) -> WordTensors:
        """Ids on a device."""
        return WordTensors(packed, device)
