"""The whole flow in one value: text → graphs → answers. What training makes, explanations ask and folders keep."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from mpad.graph.batch import CorpusTensors
from mpad.graph.build import GraphConfig, build_graphs
from mpad.graph.packed import PackedGraphs
from mpad.labels import Labels
from mpad.models.mpad import MPAD, Output
from mpad.runtime.answer import Answer, join
from mpad.runtime.network import Network
from mpad.text.tokenizer import Tokenizer
from mpad.text.vocabulary import Vocabulary
from mpad.training.eager import batches


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

    def answer(self, graphs: PackedGraphs) -> Answer:
        """Packed graphs → logits, document vectors and attention, in the order of the documents.

        On a CPU the answer comes from the NumPy runtime: a short document takes a tenth of the time that torch
        needs to start its operators.
        """
        return self._network_in_numpy(graphs) if self.device.type == "cpu" else self.answer_by_torch(graphs)

    @torch.no_grad()
    def answer_by_torch(self, graphs: PackedGraphs) -> Answer:
        """The same from the network that was trained."""
        self.network.eval()
        corpus = CorpusTensors(graphs, self.device)
        everything = torch.arange(len(corpus), device=self.device)
        return join([_as_answer(self.network(batch)) for batch in batches(corpus, everything)])

    @cached_property
    def _network_in_numpy(self) -> Network:
        weights = {name: value.detach().numpy() for name, value in self.network.state_dict().items()}
        weights.pop("vectors", None)
        return Network(self.network.config, weights, self.network.vectors.detach().numpy())

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_network_in_numpy"}

    def logits(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Text → logits: (n_texts, n_classes)."""
        if not len(texts):
            return np.zeros((0, len(self.labels)), np.float32)
        return self.answer(self.pack(texts)).logits

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


def _as_answer(output: Output) -> Answer:
    def array(tensor: torch.Tensor) -> NDArray[np.float32]:
        return np.asarray(tensor.float().cpu().numpy())

    sentences = output.sentence_attention
    return Answer(
        array(output.logits),
        array(output.vectors),
        array(output.word_attention),
        None if sentences is None else array(sentences),
    )
