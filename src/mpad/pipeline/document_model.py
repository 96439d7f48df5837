"""A trained MPAD with everything it needs to read raw text."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from mpad.data.labels import Labels, fit_thresholds
from mpad.ensemble import Ensemble, make_mpad, scale_logits
from mpad.graph.batch import CorpusTensors
from mpad.graph.build import GraphConfig, build_graphs
from mpad.graph.features import with_features
from mpad.graph.packed import PackedGraphs
from mpad.inference import Pipeline
from mpad.inference.answer import Answer, with_potentials
from mpad.inference.ensemble import Ensemble as NumpyEnsemble
from mpad.inference.ensemble import make_network
from mpad.inference.layers import new_rows
from mpad.inference.network import Network
from mpad.linear.mixture import HeldOutFit, fit_temperature
from mpad.linear.potentials import Potentials
from mpad.model import MPAD
from mpad.network import Output
from mpad.pipeline.text_model import TextModel
from mpad.text.contextual import Transformer, chunk_texts
from mpad.text.tokenizer import Tokenizer
from mpad.text.vocabulary import SPARE_ROWS, EncodedCorpus, Vocabulary


@dataclass(frozen=True)
class DocumentModel(TextModel):
    """Trained MPAD with everything it needs to read raw text."""

    tokenizer: Tokenizer
    vocabulary: Vocabulary
    graph_config: GraphConfig
    network: MPAD | Ensemble
    labels: Labels
    potentials: Potentials | None = None  # the linear part, where the model has one
    transformer: Transformer | None = None  # that features of nodes come from; None: they are word vectors
    kind = "mpad"
    _made: "_Made | None" = field(default=None, init=False, repr=False, compare=False)

    def packed(self, corpus: EncodedCorpus, texts: Sequence[str] = ()) -> PackedGraphs:
        """Build packed graphs from ids, per document or per sentence."""
        graphs = build_graphs(corpus, self.graph_config)
        if self.transformer is None:
            return graphs
        parts = self.tokenizer, self.network.by_sentence, self.transformer
        return with_features(graphs, corpus, texts, *parts, str(self.device))

    def packs(self, texts: Sequence[str]) -> Iterator[PackedGraphs]:
        """Yield packed graphs of texts, in parts that fit the spare rows or the transformer."""
        return super().packs(texts) if self.transformer is None else map(self.pack, chunk_texts(texts))

    def tensors(self, packed: PackedGraphs, device: torch.device) -> CorpusTensors:
        """Return packed graphs on a device."""
        return CorpusTensors(packed, device)

    def answer(self, packed: PackedGraphs) -> Answer:
        """Return logits, document vectors and attention of packed graphs, in the order of the documents.

        On a CPU `mpad.inference` computes them: a short document takes a tenth of the time that torch needs to
        start its operators.
        """
        network = self._in_numpy(packed) if self.device.type == "cpu" else super().answer_by_torch(packed)
        return with_potentials(network, self.potentials, packed)

    def answer_by_torch(self, packed: PackedGraphs) -> Answer:
        """Return the same, computed by torch."""
        return with_potentials(super().answer_by_torch(packed), self.potentials, packed)

    def _runner(self, packed: PackedGraphs) -> Callable[[Any], Output]:
        rows = self.rows_for(packed)
        return lambda batch: self.network(batch, None, rows)

    def rows_for(self, packed: PackedGraphs) -> torch.Tensor:
        """Return word vectors, with those of new words in the spare rows, or node features: (rows, vector_width)."""
        if packed.features is not None:
            return torch.from_numpy(packed.features).to(self.device).float()
        vectors = self.network.vectors.detach()
        if packed.new_words:
            pieces = new_rows(vectors.cpu().numpy(), packed.new_words)
            first, vectors = len(vectors) - SPARE_ROWS, vectors.clone()
            vectors[first : first + len(pieces)] = torch.from_numpy(pieces).to(vectors.device)
        return vectors

    def node_rows(self, packed: PackedGraphs) -> torch.Tensor:
        """Return the first state of each node, without copying the whole table: (n_nodes, vector_width)."""
        if packed.features is not None:
            return self.rows_for(packed)
        vectors, words = self.network.vectors.detach(), torch.from_numpy(packed.words.astype(np.int64))
        rows = vectors[words.to(vectors.device)]
        if packed.new_words:
            pieces = torch.from_numpy(new_rows(vectors.cpu().numpy(), packed.new_words)).to(rows)
            place = words - (len(vectors) - SPARE_ROWS)
            new = (place >= 0) & (place < len(pieces))
            rows[new] = pieces[place[new]]
        return rows

    @classmethod
    def of(cls, pipeline: Pipeline) -> "DocumentModel":
        """Return a pipeline's model with a torch network that shares its memory."""
        numbers = pipeline.network
        network = make_mpad(numbers.config).eval()
        tensors = {name: _shared(value) for name, value in numbers.weights.items()}
        vectors = _shared(numbers.vectors)
        if numbers.config.learn_vectors:
            tensors["vectors"] = vectors
        else:
            network.set_vectors(vectors)
        network.load_state_dict(tensors, assign=True)
        parts = pipeline.tokenizer, pipeline.vocabulary, pipeline.graph_config, network, pipeline.labels
        model = cls(*parts, pipeline.potentials, pipeline.transformer)
        places = _places(network)
        object.__setattr__(model, "_made", _Made(numbers, places, _stamp(places)))
        return model

    @property
    def pipeline(self) -> Pipeline:
        """Model without torch."""
        parts = self.tokenizer, self.vocabulary, self.graph_config, self._in_numpy, self.labels
        return Pipeline(*parts, self.potentials, self.transformer)

    @property
    def _in_numpy(self) -> Network | NumpyEnsemble:
        """Network for NumPy with its own memory; folded again if weights have changed or moved."""
        made = self._made
        if made is None or made.stamp != _stamp(made.places):
            made = _Made.of(self.network)
            object.__setattr__(self, "_made", made)
        return made.network

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_made": None}

    def summary(self) -> dict[str, Any]:
        """Return facts about the model, for people."""
        config = self.network.config
        return {
            **super().summary(),
            **({"members": config.members} if config.members > 1 else {}),
            "variant": config.variant,
            "steps": config.steps,
            "hidden": config.hidden,
            "window": self.graph_config.window,
            "directed": self.graph_config.directed,
            **({} if self.transformer is None else {"features": self.transformer.name, "vectors": "of a transformer"}),
            "potentials": 0 if self.potentials is None else len(self.potentials.idf),
        }


_Place = tuple[Mapping[str, Any], str]  # a module's parameters or buffers, and the name of one


@dataclass(frozen=True)
class _Made:
    """Network for NumPy, and the tensors that it was folded from.

    torch may move or free a tensor's memory behind a NumPy view of it (to share it with another process), and
    `load_state_dict` writes into it. So weights are copied, and copied again when tensors have changed.
    """

    network: Network | NumpyEnsemble
    places: tuple[_Place, ...]
    stamp: tuple[int, ...]

    @classmethod
    def of(cls, network: MPAD | Ensemble) -> "_Made":
        """Copy a network's weights; fixed vectors, which are rounded to float16, in that type."""
        kind = np.float32 if network.config.learn_vectors else np.float16
        vectors: NDArray[Any] = np.array(network.vectors.detach().numpy(), kind)
        if kind is np.float16 and not np.array_equal(vectors, network.vectors.detach().numpy()):
            vectors = np.array(network.vectors.detach().numpy())  # somebody has put others in
        weights = {name: np.array(x.detach().numpy()) for name, x in network.state_dict().items() if name != "vectors"}
        places = _places(network)
        return cls(make_network(network.config, weights, vectors), places, _stamp(places))


def _shared(array: NDArray[Any]) -> torch.Tensor:
    """Return a tensor over an array's memory, which is never written to."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(array)


def _places(network: MPAD | Ensemble) -> tuple[_Place, ...]:
    stores = [store for module in network.modules() for store in (module._parameters, module._buffers)]
    return tuple((store, name) for store in stores for name, tensor in store.items() if tensor is not None)


def _stamp(places: Sequence[_Place]) -> tuple[int, ...]:
    """Return a value that changes when a tensor is written to, moved or replaced."""
    tensors = [store[name] for store, name in places]
    return *[x._version for x in tensors], *[x.data_ptr() for x in tensors]


def calibrate(
    model: DocumentModel, fitted: HeldOutFit | None, logits: NDArray[np.floating], targets: NDArray[Any]
) -> tuple[DocumentModel, HeldOutFit]:
    """Return the model with its linear part, or else a temperature; and thresholds if it is multi-label.

    `logits` are those of the network for held-out documents with these targets.
    """
    if fitted is not None:
        model = replace(model, potentials=fitted.potentials)
    else:
        factor = fit_temperature(logits, targets)
        scale_logits(model.network, factor)
        fitted = HeldOutFit(logits=factor * logits, temperature=1 / factor)
    if model.labels.multilabel and fitted.logits is not None:
        thresholds = fit_thresholds(model.labels.probabilities(fitted.logits), targets)
        model = replace(model, labels=replace(model.labels, thresholds=thresholds))
    return model, fitted
