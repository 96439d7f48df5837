"""A model as one torch module over the inputs of `model.onnx`, and its export by `torch.onnx`."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mpad._version import __version__
from mpad.ensemble import as_torch
from mpad.export.onnx_folder import INPUTS
from mpad.extras import require
from mpad.graph.batch import GraphBatch
from mpad.inference import Pipeline
from mpad.kernels import accelerate
from mpad.linear.potentials import Potentials, both_classes, pair_keys
from mpad.model import segment_sum
from mpad.text.vocabulary import SPARE_ROWS

OPSET, IR_VERSION = 18, 9  # of 2023: ONNX Runtime 1.17 and newer read both
_LARGEST = 1 << 30  # bytes of weights in model.onnx itself; protobuf's limit is twice that
_SMALLEST = 1e-9


class OnnxModel(nn.Module):
    """The network and the linear part: graphs of words → logits and probabilities, (documents, classes) each."""

    def __init__(self, pipeline: Pipeline) -> None:
        super().__init__()
        self.network = accelerate(as_torch(pipeline).network, False).eval()
        self.linear = None if pipeline.potentials is None else LinearPart(pipeline.potentials)
        self.n_words = len(pipeline.vocabulary)
        self.has_pieces, self.multilabel = pipeline.vocabulary.has_pieces, pipeline.labels.multilabel

    @property
    def inputs(self) -> list[str]:
        """Return the names of the inputs."""
        names = [name for name, (_, axis, _) in INPUTS.items() if self.has_pieces or axis != "pieces"]
        return [name for name in names if self.linear is not None or name != "count"]

    def forward(self, inputs: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Classify a batch, given its inputs by name."""
        words, owner, graph_owner = inputs["words"], inputs["owner"], inputs["graph_owner"]
        n_graphs = graph_owner.shape[0]
        n: Any = n_graphs
        if self.network.by_sentence:
            n = F.pad(graph_owner, (1, 0), value=-1)[-1].item() + 1
            torch._check(n > 1)  # sizes of a trace are at least 2; the exported file takes any
        vectors, pieces = self.network.vectors, None
        rows = vectors[words].float()
        if self.has_pieces:
            pieces = Pieces(words - self.n_words, inputs["piece"], inputs["piece_owner"])
            rows = pieces.replace(rows, vectors)
        batch = GraphBatch(
            words=torch.arange(words.shape[0]),
            owner=owner,
            size=segment_sum(torch.ones_like(owner), owner, n_graphs),
            source=inputs["source"],
            target=inputs["target"],
            weight=inputs["weight"],
            graph_owner=graph_owner,
            graph_count=segment_sum(torch.ones_like(graph_owner), graph_owner, n),
            rows=rows,
        )
        logits = self.network(batch).logits
        if self.linear is not None:
            logits = self.linear.network * logits + self.linear(words, inputs["count"], batch, n, pieces)
        return logits, torch.sigmoid(logits) if self.multilabel else torch.softmax(logits, 1)


class Pieces:
    """The pieces of new words, which follow the words of the vocabulary."""

    def __init__(self, number: Tensor, piece: Tensor, owner: Tensor) -> None:
        self.new, self.number = number >= 0, number.clamp(min=0)  # (nodes,)
        self.piece, self.owner = piece, owner  # (pieces,)
        self.size = segment_sum(torch.ones_like(piece), owner, SPARE_ROWS)  # (new words,)
        self.known = self.new & (self.size[self.number] > 0)  # (nodes,)

    def replace(self, rows: Tensor, table: Tensor) -> Tensor:
        """Give new words the mean of their pieces' rows of a table: (nodes, width) → the same."""
        total = segment_sum(table[self.piece].float(), self.owner, SPARE_ROWS)
        return torch.where(self.new[:, None], (total / self.size.clamp(min=1)[:, None])[self.number], rows)


class LinearPart(nn.Module):
    """The linear part (`mpad.linear.potentials`)."""

    potential: Tensor  # (words + pairs + 1, scores); the last row is of all others
    idf: Tensor  # (words + pairs + 1,)
    keys: Tensor  # (2ᵏ,), those of pairs, then larger ones
    idf_new: Tensor
    from_scores: Tensor  # (scores, classes)
    from_mean: Tensor  # (width, classes)
    constant: Tensor  # (classes,)
    network: Tensor

    def __init__(self, potentials: Potentials) -> None:
        super().__init__()
        shape = potentials.shape
        self.n_words, self.n_pairs, self.width = shape.words, shape.pairs, shape.width
        self.has_new_words = potentials.has_new_words
        keys = torch.full((1 << self.n_pairs.bit_length(),), torch.iinfo(torch.int64).max)
        keys[: self.n_pairs] = torch.from_numpy(pair_keys(potentials.pairs[:, 0], potentials.pairs[:, 1], self.n_words))
        columns = potentials.potential.shape[1]
        both = torch.from_numpy(both_classes(torch.eye(columns).numpy(), len(potentials.bias)))
        tensors = {
            "potential": F.pad(torch.from_numpy(potentials.potential), (0, 0, 0, 1)),
            "idf": F.pad(torch.from_numpy(potentials.idf), (0, 1)),
            "idf_new": torch.tensor(potentials.idf_new, dtype=torch.float32),
            "keys": keys,
            "from_scores": both @ torch.from_numpy(potentials.from_scores).T,
            "from_mean": torch.from_numpy(potentials.from_mean).T,
            "constant": torch.from_numpy(potentials.constant),
            "network": torch.tensor(potentials.network, dtype=torch.float32),
        }
        for name, tensor in tensors.items():
            self.register_buffer(name, tensor.contiguous())

    def forward(self, words: Tensor, count: Tensor, batch: GraphBatch, n: int, pieces: Pieces | None) -> Tensor:
        """Return the linear part of the logits: (documents, classes)."""
        document = batch.graph_owner[batch.owner]
        row = torch.where(words < self.n_words, words, self.n_words + self.n_pairs)
        known = self.idf[row] > 0
        value = _sublinear(count) * torch.where(known, self.idf[row], self.idf_new)
        share = value / segment_sum(value, document, n).clamp(min=_SMALLEST)[document]
        rows = self.potential[row].float()
        if pieces is not None and self.has_new_words:
            known, rows = known | pieces.known, pieces.replace(rows, self.potential)
        value = value * known
        if self.n_pairs:
            pair = self._pairs(words[batch.source], words[batch.target])
            rows = torch.cat([rows, self.potential[pair].float()])
            value = torch.cat([value, _sublinear(batch.weight) * self.idf[pair]])
        owner = torch.cat([document, document[batch.target]]) if self.n_pairs else document
        length = segment_sum(value * value, owner, n).sqrt().clamp(min=_SMALLEST)
        scores = segment_sum(rows * (value / length[owner])[:, None], owner, n)
        logits = scores @ self.from_scores + self.constant
        if self.width and batch.rows is not None:
            logits = logits + segment_sum(batch.rows[:, : self.width] * share[:, None], document, n) @ self.from_mean
        return logits

    def _pairs(self, first: Tensor, second: Tensor) -> Tensor:
        """Find the rows of pairs of words by halving, since ONNX has no search: (edges,)."""
        key, row = first * self.n_words + second, torch.zeros_like(first)
        for bit in reversed(range(self.n_pairs.bit_length())):
            row = row + (self.keys[row + (1 << bit) - 1] < key) * (1 << bit)
        known = (self.keys[row] == key) & (torch.maximum(first, second) < self.n_words)
        return self.n_words + torch.where(known, row, self.n_pairs)


def _sublinear(count: Tensor) -> Tensor:
    """1 + log(count); a weight below 1 is itself."""
    return torch.where(count < 1, count, 1 + count.clamp(min=1).log())


def write_onnx(pipeline: Pipeline, path: Path) -> list[str]:
    """Write a model as ONNX; return the names of its inputs."""
    require("onnxscript", extra="onnx")
    passes = require("onnx_ir.passes.common", extra="onnx")
    model = OnnxModel(pipeline).eval()
    axes = {axis: torch.export.Dim(axis) for _, axis, _ in INPUTS.values()}
    example = {name: torch.zeros(3, dtype=getattr(torch, INPUTS[name][0])) for name in model.inputs}
    with _quiet(), torch.no_grad():
        program: Any = torch.onnx.export(
            model,
            kwargs={"inputs": example},
            input_names=model.inputs,
            output_names=["logits", "probabilities"],
            dynamic_shapes={"inputs": {name: {0: axes[INPUTS[name][1]]} for name in model.inputs}},
            opset_version=OPSET,
            dynamo=True,
            verbose=False,
            custom_translation_table={torch.ops.aten.index_add.default: _index_add},
        )
    passes.ClearMetadataAndDocStringPass()(program.model)  # source lines and paths of this machine
    program.model.ir_version = IR_VERSION
    program.model.producer_name = "mpad"
    program.model.metadata_props["mpad"] = __version__
    for output in program.model.graph.outputs:
        output.shape = type(output.shape)(["documents", len(pipeline.labels)])
    size = sum(tensor.nbytes for tensors in (model.parameters(), model.buffers()) for tensor in tensors)
    program.save(path, external_data=size > _LARGEST)
    return model.inputs


def _index_add(zeros: Any, dim: int, index: Any, source: Any, alpha: float = 1.0) -> Any:
    """Translate index_add over rows. ONNX Runtime adds rows wrongly in ScatterND if it has several threads."""
    operators = require("onnxscript", extra="onnx").opset18
    column = operators.Reshape(index, operators.Constant(value_ints=[-1] + [1] * (len(source.shape) - 1)))
    places = operators.Expand(column, operators.Shape(source))
    return operators.ScatterElements(zeros, places, source, axis=0, reduction="add")


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence what torch's exporter reports about itself."""
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*LeafSpec.* is deprecated", FutureWarning)
            warnings.filterwarnings("ignore", "# The axis name", UserWarning)
            yield
    finally:
        logging.disable(level)
