"""Several separately trained MPADs as one network, and a loaded network as one of torch."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from mpad.config import MPADConfig
from mpad.graph.batch import GraphBatch
from mpad.inference.pipeline import Pipeline
from mpad.kernels import accelerate
from mpad.model import MPAD
from mpad.network import GraphNetwork, Output


class Ensemble(GraphNetwork):
    """The mean of several networks.

    logits = mean over members of MPAD_k(batch)    vectors = [vectors of member 1, …, of member K]

    Attention is averaged too. Fixed word vectors are one table shared by all members, (n_words, vector_width);
    trained ones belong to each member and are concatenated: (n_words, K · vector_width).
    """

    config: MPADConfig

    def __init__(self, config: MPADConfig) -> None:
        super().__init__(replace(config, members=1, vector_width=config.table_width))
        self.config = config
        self.by_sentence = config.hierarchical
        one = replace(config, members=1, n_words=1, learn_vectors=False)  # it shares the ensemble's table
        self.members = nn.ModuleList(MPAD(one) for _ in range(config.members))

    @classmethod
    def of(cls, networks: Sequence[MPAD]) -> "Ensemble":
        """Join trained networks of one configuration; fixed word vectors are the same in all of them."""
        config = replace(networks[0].config, members=len(networks))
        with torch.device("meta"):
            outline = cls(config)
        device = networks[0].vectors.device
        states = [(f"members.{number}.", network.state_dict()) for number, network in enumerate(networks)]
        tensors = {f"{at}{name}": x for at, state in states for name, x in state.items() if name != "vectors"}
        tables = [network.vectors.detach() for network in networks]
        if config.learn_vectors:
            tensors["vectors"] = torch.cat(tables, dim=1)
        outline.load_state_dict({name: x.clone() for name, x in tensors.items()}, assign=True)
        for member in outline.members:
            member.set_vectors(torch.zeros(1, config.vector_width, device=device))  # type: ignore[operator]
        if not config.learn_vectors:
            outline.set_vectors(tables[0])
        return outline.eval()

    def forward(self, batch: GraphBatch, edge_scale: Tensor | None = None, vectors: Tensor | None = None) -> Output:
        """Classify a batch. `edge_scale` scales what edges carry; `vectors` replaces the table of word vectors."""
        own = self.vectors if batch.rows is None else batch.rows
        table, n = own if vectors is None else vectors, len(self.members)
        tables = table.chunk(n, dim=1) if self.config.learn_vectors else [table] * n
        outputs: list[Output] = [
            member(batch, edge_scale, own) for member, own in zip(self.members, tables, strict=True)
        ]
        each = torch.stack([output.logits for output in outputs])
        words, sentences = (
            [getattr(output, name) for output in outputs] for name in ("word_attention", "sentence_attention")
        )
        return Output(
            each.mean(0),
            torch.cat([output.vectors for output in outputs], dim=1),
            torch.stack(words).mean(0),
            torch.stack(sentences).mean(0) if sentences[0] is not None else None,
            member_logits=each,
        )


@torch.no_grad()
def scale_logits(network: MPAD | Ensemble, factor: float) -> None:
    """Multiply all future logits of a network by a factor."""
    for member in [network] if isinstance(network, MPAD) else network.members:
        member.classes.weight.mul_(factor)  # type: ignore[union-attr, operator]
        member.classes.bias.mul_(factor)  # type: ignore[union-attr, operator]


def as_torch(pipeline: Pipeline) -> Pipeline:
    """Return a loaded pipeline with a network of torch that shares the memory of its NumPy network."""
    if isinstance(pipeline.network, nn.Module):
        return pipeline
    loaded, config = pipeline.network, pipeline.network.config
    network: MPAD | Ensemble = accelerate(MPAD(config) if config.members == 1 else Ensemble(config)).eval()
    tensors, vectors = {name: _share(value) for name, value in loaded.weights.items()}, _share(loaded.vectors)
    if config.learn_vectors:
        tensors["vectors"] = vectors
    else:
        network.set_vectors(vectors)
    network.load_state_dict(tensors, assign=True)
    network.share(loaded)
    return pipeline.with_network(network)


def _share(array: NDArray[Any]) -> Tensor:
    """Return a tensor over an array's memory, which is never written to."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(array)
