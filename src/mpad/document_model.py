"""A model over graphs of words: MPAD, with all that it needs to read raw text."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

from mpad.graph.batch import CorpusTensors
from mpad.graph.build import GraphConfig, build_graphs
from mpad.graph.packed import PackedGraphs
from mpad.labels import Labels
from mpad.models.mpad import MPAD
from mpad.runtime.answer import Answer
from mpad.runtime.network import Network
from mpad.text.tokenizer import Tokenizer
from mpad.text.vocabulary import EncodedCorpus, Vocabulary
from mpad.text_model import TextModel


@dataclass(frozen=True)
class DocumentModel(TextModel):
    """A trained network with all that it needs to read raw text."""

    tokenizer: Tokenizer
    vocabulary: Vocabulary
    graph_config: GraphConfig
    network: MPAD
    labels: Labels
    kind = "mpad"

    def packed(self, corpus: EncodedCorpus, texts: Sequence[str] = ()) -> PackedGraphs:
        """Ids → packed graphs, by document or by sentence as the variant wants."""
        return build_graphs(corpus, self.graph_config)

    def tensors(self, packed: PackedGraphs, device: torch.device) -> CorpusTensors:
        """Packed graphs on a device."""
        return CorpusTensors(packed, device)

    def answer(self, packed: PackedGraphs) -> Answer:
        """Packed graphs → logits, document vectors and attention, in the order of the documents.

        On a CPU the answer comes from the NumPy runtime: a short document takes a tenth of the time that torch
        needs to start its operators.
        """
        return self._network_in_numpy(packed) if self.device.type == "cpu" else self.answer_by_torch(packed)

    @cached_property
    def _network_in_numpy(self) -> Network:
        weights = {name: value.detach().numpy() for name, value in self.network.state_dict().items()}
        weights.pop("vectors", None)
        return Network(self.network.config, weights, self.network.vectors.detach().numpy())

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_network_in_numpy"}

    def summary(self) -> dict[str, Any]:
        """Facts about the model, for people."""
        config = self.network.config
        return {
            **super().summary(),
            "variant": config.variant,
            "steps": config.steps,
            "hidden": config.hidden,
            "window": self.graph_config.window,
            "directed": self.graph_config.directed,
        }
