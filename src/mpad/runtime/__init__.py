"""The same answers from NumPy alone: text → probabilities without importing torch.

>>> from mpad import runtime
>>> model = runtime.load("my-model")                     # doctest: +SKIP
>>> model.predict(["a moving film"])                     # doctest: +SKIP
array(['positive'], dtype='<U8')

For serving and for starting fast. A model folder that `MPADClassifier.save` or `mpad fit` wrote is all it needs.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpad.graph.build import GraphConfig, build_graphs
from mpad.graph.packed import PackedGraphs
from mpad.graph.potentials import Potentials
from mpad.inputs import as_texts
from mpad.labels import Labels
from mpad.runtime.answer import Answer, with_potentials
from mpad.runtime.network import Network
from mpad.storage.model_folder import VECTORS, ModelFiles, open_model, read_network
from mpad.text.tokenizer import Tokenizer, saved_tokenizer
from mpad.text.vocabulary import Vocabulary

__all__ = ["Answer", "Network", "Pipeline", "load"]


@dataclass(frozen=True)
class Pipeline:
    """Text → label as one value, without torch: what the estimator, the server and the command line answer by."""

    tokenizer: Tokenizer
    vocabulary: Vocabulary
    graph_config: GraphConfig
    network: Network
    labels: Labels
    potentials: Potentials | None = None  # the linear part, where the model has one

    def pack(self, texts: Sequence[str]) -> PackedGraphs:
        """Text → packed graphs, by document or by sentence as the variant wants."""
        corpus = self.vocabulary.encode(texts, self.tokenizer, sentences=self.network.config.hierarchical)
        return build_graphs(corpus, self.graph_config)

    def answer(self, packed: PackedGraphs) -> Answer:
        """Packed graphs → logits, document vectors and attention, in the order of the documents."""
        return with_potentials(self.network(packed), self.potentials, packed)

    def logits(self, texts: Iterable[str]) -> NDArray[np.float32]:
        """Text → logits: (n, n_classes)."""
        parts = self.vocabulary.parts(as_texts(texts), self.tokenizer)
        return np.concatenate([self.answer(self.pack(part)).logits for part in parts])

    def predict_proba(self, texts: Iterable[str]) -> NDArray[np.float64]:
        """Text → probability of each class: (n, n_classes)."""
        return self.labels.probabilities(self.logits(texts))

    def predict(self, texts: Iterable[str]) -> NDArray[Any]:
        """Text → labels: (n,), or indicators (n, n_classes) for many labels a document."""
        return self.labels.decide(self.logits(texts))


def load(folder: str | Path, tokenizer: str | Tokenizer | Callable[[str], Iterable[str]] | None = None) -> Pipeline:
    """Read a model folder; `tokenizer` hands in a function that the model was trained with."""

    def read(files: ModelFiles) -> Pipeline:
        result = read_network(files)
        config = result.mpad_config()
        chosen = saved_tokenizer(result.tokenizer, tokenizer)
        tensors = result.tensors(config.tensor_shapes())
        potentials, vectors = result.potentials(tensors), tensors.pop(VECTORS)
        network = Network(config, tensors, vectors)
        parts = chosen, result.vocabulary, result.graph or GraphConfig(), network, result.labels
        return Pipeline(*parts, potentials)

    return open_model(folder, read)
