"""Networks of torch, apart from their equations: word vectors, batches, and predictions as NumPy arrays.

`Network` is the base of the baselines, `GraphNetwork` of MPAD and ensembles of it. Both predict packed documents by
`answer`, as the networks of `mpad.inference` do, so that an `inference.Pipeline` holds either.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from mpad.errors import InputError
from mpad.graph.batch import CorpusTensors
from mpad.graph.packed import PackedGraphs
from mpad.inference.network import Answer, join, make_network, new_rows
from mpad.inference.network import Ensemble as NumpyEnsemble
from mpad.inference.network import Network as NumpyNetwork
from mpad.sequence.batch import WordTensors
from mpad.sequence.trees import PackedTrees, TreeTensors
from mpad.text.vocabulary import SPARE_ROWS, EncodedCorpus

_EVALUATION_NODES = 16_384  # words in a batch of evaluation; larger batches do not fit the cache
Packed = PackedGraphs | EncodedCorpus | PackedTrees  # documents as networks read them
Corpus = CorpusTensors | WordTensors | TreeTensors  # the same on a device, to cut batches from


def to_device(packed: Packed, device: torch.device) -> Corpus:
    """Return packed documents on a device."""
    if isinstance(packed, PackedTrees):
        return TreeTensors(packed, device)
    return CorpusTensors(packed, device) if isinstance(packed, PackedGraphs) else WordTensors(packed, device)


def batch_numbers(corpus: Corpus, documents: Tensor) -> NDArray[np.int64]:
    """Return the batch of each document, in order; batches have about the same number of words."""
    sizes = corpus.document_sizes(documents).cpu().numpy()
    return np.asarray(np.cumsum(sizes) // _EVALUATION_NODES)


def in_batches(corpus: Corpus, documents: Tensor) -> Iterator[Any]:
    """Cut documents, in order, into batches of about the same number of words."""
    number = batch_numbers(corpus, documents)
    for part in np.split(np.arange(len(number)), np.flatnonzero(np.diff(number)) + 1):
        yield corpus.take(documents[torch.from_numpy(part).to(documents.device)])


@dataclass(frozen=True)
class Output:
    """The output of a network for a batch."""

    logits: Tensor  # (documents, classes)
    vectors: Tensor  # (documents, width): document vectors, the input of the last layer
    word_attention: Tensor | None = None  # (rounds, words), sums to 1 over the words of a graph
    sentence_attention: Tensor | None = None  # (rounds or 1, sentences), sums to 1 over the sentences of a document
    member_logits: Tensor | None = None  # (members, documents, classes) of an ensemble
    extra: Tensor | None = None  # a loss of the network's own, added to the documents' loss in training

    def answer(self) -> Answer:
        """Return the output as NumPy arrays."""
        parts = self.logits, self.vectors, self.word_attention, self.sentence_attention, self.member_logits
        return Answer(*(None if part is None else part.float().cpu().numpy() for part in parts))  # type: ignore[arg-type]


class Network(nn.Module):
    """A network over a table of word vectors, trained or fixed."""

    stackable = False  # several can train as one network (mpad.kernels.cuda)
    by_sentence = False  # a document is a sequence of sentences
    reads_trees = False  # a document is a parse tree
    graph: Any = None  # GraphConfig of baselines that read graphs of words
    vectors: Tensor  # (n_words, vector_width)

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config = config
        table = torch.zeros(config.n_words, config.vector_width)
        if config.learn_vectors:
            self.vectors = nn.Parameter(table)
        else:
            self.register_buffer("vectors", table, persistent=False)

    def set_vectors(self, rows: Tensor) -> None:
        """Start from these word vectors: copied if they are trained, shared if they are fixed."""
        if isinstance(self.vectors, nn.Parameter):
            with torch.no_grad():
                self.vectors.copy_(rows)
        else:
            self.vectors = rows

    @property
    def device(self) -> torch.device:
        """Device of the word vectors."""
        return self.vectors.device

    def forward(self, batch: Any) -> Output:
        """Classify a batch of documents."""
        raise NotImplementedError

    def answer(self, packed: Any) -> Answer:
        """Predict packed documents, in their order."""
        return self.answer_by_torch(packed)

    @torch.no_grad()
    def answer_by_torch(self, packed: Any) -> Answer:
        """Predict packed documents by torch, on the network's device."""
        self.eval()
        corpus, rows = to_device(packed, self.device), self.rows_for(packed)
        everything, options = torch.arange(len(corpus), device=self.device), {} if rows is None else {"vectors": rows}
        return join([self(batch, **options).answer() for batch in in_batches(corpus, everything)])

    def rows_for(self, packed: Any) -> Tensor | None:
        """Return word vectors to use in place of the table, if these documents need any."""
        return None

    @torch.no_grad()
    def logits(self, corpus: Corpus, documents: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the logits of some documents of a corpus on the network's device: (documents, n_classes)."""
        self.eval()
        if not len(documents):
            return np.zeros((0, self.config.n_classes), np.float32)
        chosen = torch.from_numpy(documents).to(self.device)
        logits = [self(batch).logits for batch in in_batches(corpus, chosen)]
        return np.asarray(torch.cat(logits).float().cpu().numpy())


class GraphNetwork(Network):
    """A network over graphs of words that NumPy and C can compute too, and that reads words it was not trained on."""

    _folded: "_Folded | None" = None

    def answer(self, packed: PackedGraphs) -> Answer:
        """Predict packed documents, on a CPU without torch: it would take ten times as long for a short document."""
        return self.to_numpy().answer(packed) if self.device.type == "cpu" else self.answer_by_torch(packed)

    def rows_for(self, packed: PackedGraphs) -> Tensor:
        """Return word vectors, with those of new words in the spare rows, or node features: (rows, vector_width)."""
        if packed.features is not None:
            return torch.from_numpy(packed.features).to(self.device).float()
        vectors = self.vectors.detach().float()
        if packed.new_words:
            pieces = new_rows(vectors.cpu().numpy(), packed.new_words)
            first, vectors = len(vectors) - SPARE_ROWS, vectors.clone()
            vectors[first : first + len(pieces)] = torch.from_numpy(pieces).to(vectors.device)
        return vectors

    def node_rows(self, packed: PackedGraphs) -> Tensor:
        """Return the vector of each node, without copying the whole table: (n_nodes, vector_width)."""
        if packed.features is not None:
            return self.rows_for(packed)
        vectors, words = self.vectors.detach(), torch.from_numpy(packed.words.astype(np.int64))
        rows = vectors[words.to(vectors.device)].float()
        if packed.new_words:
            pieces = torch.from_numpy(new_rows(vectors.cpu().numpy(), packed.new_words)).to(rows)
            place = words - (len(vectors) - SPARE_ROWS)
            new = (place >= 0) & (place < len(pieces))
            rows[new] = pieces[place[new]]
        return rows

    def to_numpy(self) -> NumpyNetwork | NumpyEnsemble:
        """Return the network for prediction without torch. It has its own memory and follows changes of the weights."""
        folded = self._folded
        if folded is None or folded.stamp != _stamp(folded.places):
            folded = self._folded = _Folded.of(self)
        return folded.network

    def share(self, network: NumpyNetwork | NumpyEnsemble) -> None:
        """Remember that `network` has the same weights as this one, in the same memory."""
        places = _places(self)
        self._folded = _Folded(network, places, _stamp(places))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_folded"}


_Place = tuple[Mapping[str, Any], str]  # a module's parameters or buffers, and the name of one


@dataclass(frozen=True)
class _Folded:
    """Network for NumPy, and the tensors that it was made from.

    torch may move or free a tensor's memory behind a NumPy view of it (to share it with another process), and
    `load_state_dict` writes into it. So weights are copied, and copied again when tensors have changed.
    """

    network: NumpyNetwork | NumpyEnsemble
    places: tuple[_Place, ...]
    stamp: tuple[int, ...]

    @classmethod
    def of(cls, network: Network) -> "_Folded":
        """Copy a network's weights; fixed vectors that float16 represents exactly, in that type."""
        table = network.vectors.detach().numpy()
        kind = np.float32 if network.config.learn_vectors else np.float16
        vectors: NDArray[Any] = np.array(table, kind)
        if kind is np.float16 and not np.array_equal(vectors, table):
            vectors = np.array(table)
        weights = {name: np.array(x.detach().numpy()) for name, x in network.state_dict().items() if name != "vectors"}
        places = _places(network)
        return cls(make_network(network.config, weights, vectors), places, _stamp(places))


def _places(network: nn.Module) -> tuple[_Place, ...]:
    stores = [store for module in network.modules() for store in (module._parameters, module._buffers)]
    return tuple((store, name) for store in stores for name, tensor in store.items() if tensor is not None)


def _stamp(places: tuple[_Place, ...]) -> tuple[int, ...]:
    """Return a value that changes when a tensor is written to, moved or replaced."""
    tensors = [store[name] for store, name in places]
    return *[x._version for x in tensors], *[x.data_ptr() for x in tensors]


def find_device(name: str) -> torch.device:
    """Return the device of that name; "auto" is the GPU if there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        if device.type == "meta":
            raise RuntimeError("it holds no numbers")
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise InputError(f"device '{name}' cannot be used here: {str(error).splitlines()[0]}") from None
    return device
