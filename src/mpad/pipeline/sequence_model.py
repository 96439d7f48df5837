"""A baseline's trained network with everything it needs to read raw text."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from mpad.data.labels import Labels
from mpad.graph.batch import CorpusTensors
from mpad.graph.build import build_graphs
from mpad.graph.packed import PackedGraphs
from mpad.network import Network
from mpad.pipeline.text_model import TextModel
from mpad.sequence.batch import WordTensors, cut_sentences
from mpad.sequence.trees import PackedTrees, TreeTensors, pack_trees
from mpad.text.tokenizer import Tokenizer
from mpad.text.vocabulary import EncodedCorpus, Vocabulary
from mpad.training.task import Corpus


@dataclass(frozen=True)
class SequenceModel(TextModel):
    """Trained network over words in order, over graphs of words, or over parse trees."""

    kind: str
    tokenizer: Tokenizer
    vocabulary: Vocabulary
    network: Network
    labels: Labels

    def packed(self, corpus: EncodedCorpus, texts: Sequence[str]) -> EncodedCorpus | PackedGraphs | PackedTrees:
        """Return bounded sentences of ids, graphs of words, or parse trees, whichever the network reads."""
        if self.network.reads_trees:
            return pack_trees(texts, corpus, len(self.labels))
        if self.network.graph is not None:
            return build_graphs(corpus, self.network.graph)
        return cut_sentences(corpus) if self.network.by_sentence else corpus

    def tensors(self, packed: EncodedCorpus | PackedGraphs | PackedTrees, device: torch.device) -> Corpus:
        """Return these on a device."""
        if isinstance(packed, PackedTrees):
            return TreeTensors(packed, device)
        return CorpusTensors(packed, device) if isinstance(packed, PackedGraphs) else WordTensors(packed, device)
