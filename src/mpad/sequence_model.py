"""One of the rivals' networks, with all that it needs to read raw text."""

from dataclasses import dataclass

import torch

from mpad.graph.batch import CorpusTensors
from mpad.graph.build import build_graphs
from mpad.graph.packed import PackedGraphs
from mpad.labels import Labels
from mpad.models.network import Network
from mpad.sequence.batch import WordTensors
from mpad.text.tokenizer import Tokenizer
from mpad.text.vocabulary import EncodedCorpus, Vocabulary
from mpad.text_model import TextModel


@dataclass(frozen=True)
class SequenceModel(TextModel):
    """A trained network over words in their order, or over graphs of them."""

    kind: str
    tokenizer: Tokenizer
    vocabulary: Vocabulary
    network: Network
    labels: Labels

    def packed(self, corpus: EncodedCorpus) -> EncodedCorpus | PackedGraphs:
        """Ids as they are, or as graphs of words where the network reads those."""
        return corpus if self.network.graph is None else build_graphs(corpus, self.network.graph)

    def tensors(self, packed: EncodedCorpus | PackedGraphs, device: torch.device) -> WordTensors | CorpusTensors:
        """The same on a device."""
        return CorpusTensors(packed, device) if isinstance(packed, PackedGraphs) else WordTensors(packed, device)
