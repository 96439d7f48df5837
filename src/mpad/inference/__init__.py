"""The same answers from NumPy alone: text → probabilities without importing torch.

>>> from mpad import inference
>>> model = inference.load("my-model")                     # doctest: +SKIP
>>> model.predict(["a moving film"])                     # doctest: +SKIP
array(['positive'], dtype='<U8')

For serving and for starting fast. A model folder that `MPADClassifier.save` or `mpad fit` wrote is all it needs.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpad.data.inputs import as_texts
from mpad.data.labels import Labels
from mpad.graph.build import GraphConfig, build_graphs
from mpad.graph.packed import PackedGraphs
from mpad.inference.answer import Answer, with_potentials
from mpad.inference.ensemble import Ensemble, make_network
from mpad.inference.network import Network
from mpad.linear.potentials import Potentials
from mpad.storage.model_folder import VECTORS, ModelFiles, open_model, read_network
from mpad.text.contextual import Transformer, chunk_texts
from mpad.text.tokenizer import Tokenizer, saved_tokenizer
from mpad.text.vocabulary import Vocabulary

__all__ = ["Answer", "Network", "Pipeline", "load"]


@dataclass(frozen=True)
class Pipeline:
    """Text → label as one value, without torch: what the estimator, the server and the command line answer by."""

    tokenizer: Tokenizer
    vocabulary: Vocabulary
    graph_config: GraphConfig
    network: Network | Ensemble
    labels: Labels
    potentials: Potentials | None = None  # the linear part, where the model has one
    transformer: Transformer | None = None  # that features of nodes come from; None: they are word vectors

    def pack(self, texts: Sequence[str]) -> PackedGraphs:
        """Text → packed graphs, by document or by sentence as the variant wants."""
        sentences = self.network.config.hierarchical
        corpus = self.vocabulary.encode(texts, self.tokenizer, sentences)
        graphs = build_graphs(corpus, self.graph_config)
        if self.transformer is None:
            return graphs
        from mpad.graph.features import with_features  # here: others need not wait for it

        return with_features(graphs, corpus, texts, self.tokenizer, sentences, self.transformer)

    def packs(self, texts: Iterable[str]) -> Iterator[PackedGraphs]:
        """The same, in as many parts as the spare rows ask for."""
        checked = as_texts(texts)
        if self.transformer is not None:
            return map(self.pack, chunk_texts(checked))
        parts = self.vocabulary.encode_parts(checked, self.tokenizer, self.network.config.hierarchical)
        return (build_graphs(corpus, self.graph_config) for _, corpus in parts)

    def answer(self, packed: PackedGraphs) -> Answer:
        """Packed graphs → logits, document vectors and attention, in the order of the documents."""
        return with_potentials(self.network(packed), self.potentials, packed)

    def logits(self, texts: Iterable[str]) -> NDArray[np.float32]:
        """Text → logits: (n, n_classes)."""
        return np.concatenate([answer.logits for _, answer in self.answers(texts)])

    def answers(self, texts: Iterable[str]) -> Iterator[tuple[PackedGraphs, Answer]]:
        """Text → packed graphs and the answer on them, part by part."""
        for packed in self.packs(texts):
            yield packed, self.answer(packed)

    def predict_proba(self, texts: Iterable[str]) -> NDArray[np.float64]:
        """Text → probability of each class: (n, n_classes)."""
        return self.labels.probabilities(self.logits(texts))

    def predict(self, texts: Iterable[str]) -> NDArray[Any]:
        """Text → labels: (n,), or indicators (n, n_classes) for many labels a document."""
        return self.labels.decide(self.logits(texts))


def load(
    folder: str | Path,
    tokenizer: str | Tokenizer | Callable[[str], Iterable[str]] | None = None,
    memory_mapped: bool = False,
) -> Pipeline:
    """Read a model folder; `tokenizer` hands in a function that the model was trained with.

    Memory-mapped, word vectors and weights are views of the folder's file, which processes share and nobody may
    write into as long as they run; a folder that takes its place does no harm.
    """

    def read(files: ModelFiles) -> Pipeline:
        result = read_network(files)
        config = result.mpad_config()
        chosen = saved_tokenizer(result.tokenizer, tokenizer)
        tensors = result.tensors(config.tensor_shapes(), memory_mapped)
        potentials, vectors = result.potentials(tensors), tensors.pop(VECTORS)
        network = make_network(config, tensors, vectors)
        parts = chosen, result.vocabulary, result.graph or GraphConfig(), network, result.labels
        return Pipeline(*parts, potentials, result.transformer)

    return open_model(folder, read)
