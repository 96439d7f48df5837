"""The whole flow in one value: text → graphs → answers. What training makes, explanations ask and folders keep."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from mpad.graph.batch import CorpusTensors
from mpad.graph.build import GraphConfig, build_graphs
from mpad.graph.packed import PackedGraphs
from mpad.labels import Labels
from mpad.models.mpad import MPAD, Output
from mpad.text.tokenizer import Tokenizer
from mpad.text.vocabulary import Vocabulary
from mpad.training.loop import batches


@dataclass(frozen=True)
class DocumentModel:
    """A trained network with all that it needs to read raw text."""

    tokenizer: Tokenizer
    vocabulary: Vocabulary
    graph_config: GraphConfig
    network: MPAD
    labels: Labels

    @property
    def device(self) -> torch.device:
        """Where the network lives."""
        return self.network.classes.weight.device

    def pack(self, texts: Sequence[str]) -> PackedGraphs:
        """Text → packed graphs, by document or by sentence as the variant wants."""
        corpus = self.vocabulary.encode(texts, self.tokenizer, sentences=self.network.config.hierarchical)
        return build_graphs(corpus, self.graph_config)

    @torch.no_grad()
    def answer(self, graphs: PackedGraphs) -> Output:
        """Packed graphs → logits, document vectors and attention, on the CPU, in the order of the documents."""
        self.network.eval()
        corpus = CorpusTensors(graphs, self.device)
        everything = torch.arange(len(corpus), device=self.device)
        outputs = [self.network(batch) for batch in batches(corpus, everything)]
        sentence_attention = [output.sentence_attention for output in outputs]
        return Output(
            logits=torch.cat([output.logits for output in outputs]).float().cpu(),
            vectors=torch.cat([output.vectors for output in outputs]).float().cpu(),
            word_attention=torch.cat([output.word_attention for output in outputs], dim=1).cpu(),
            sentence_attention=None if sentence_attention[0] is None else torch.cat(sentence_attention, dim=1).cpu(),
        )

    def logits(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Text → logits: (n_texts, n_classes)."""
        if not len(texts):
            return np.zeros((0, len(self.labels)), np.float32)
        return np.asarray(self.answer(self.pack(texts)).logits.numpy())

    def probabilities(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Text → probabilities: (n_texts, n_classes)."""
        return self.labels.probabilities(self.logits(texts))

    def summary(self) -> dict[str, Any]:
        """Facts about the model, for people."""
        config = self.network.config
        return {
            "variant": config.variant,
            "classes": [str(label) for label in self.labels.classes],
            "multilabel": self.labels.multilabel,
            "words": len(self.vocabulary),
            "words seen in training": self.vocabulary.seen,
            "vector width": config.vector_width,
            "vectors": "learnt" if config.learn_vectors else "fixed",
            "parameters": sum(parameter.numel() for parameter in self.network.parameters()),
            "steps": config.steps,
            "hidden": config.hidden,
            "tokenizer": self.tokenizer.name,
            "window": self.graph_config.window,
            "directed": self.graph_config.directed,
        }
