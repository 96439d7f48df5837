"""Every module × option × backend: a plain module, its inputs, and whether the backend should take them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from mpad.config import PRESETS, MPADConfig
from mpad.dropout import DropoutCounter, set_dropout_counter
from mpad.graph import graphs_of_words
from mpad.graph.batch import CorpusTensors
from mpad.kernels.static_batch import BatchShape, StaticCorpus
from mpad.model import MPAD, MessagePassing, Readout, SentenceGraph, WordGraph

TEXTS = ["a b c a b d. e f", "", "x", "b a. c. d e f g. a b", "the end. is near", "c c c", "a b. b a. a b a c a"]
DOCUMENTS = torch.tensor([[[0, 2, 3, 5], [6, 1, 4, -1]]])  # (steps, models, slots)
AUTHORS = PRESETS["authors"].network
STYLES: dict[str, dict[str, Any]] = {"paper": {}, "authors": AUTHORS}
KINDS = "words", "words without master", "words, summed", "clique", "clique, summed", "path"


@dataclass(frozen=True)
class Case:
    """A module and its inputs, made anew each time, and whether C should run it."""

    name: str
    make: Callable[[], tuple[nn.Module, tuple[Any, ...]]]
    taken: bool = True
    training: bool = True
    tolerance: float = 2e-5

    def __str__(self) -> str:
        return self.name


def corpus(per="sentence", texts=TEXTS, device="cpu"):
    graphs, vocabulary = graphs_of_words(texts, per=per)
    return CorpusTensors(graphs, device), vocabulary


def batch_of(per="sentence", times=20, device="cpu"):
    texts = TEXTS * times
    return corpus(per, texts, device)[0].take(torch.arange(len(texts), device=device))


def static_batch(per="sentence", device="cpu"):
    """A static batch of two models, and each model's documents as a batch of its own."""
    tensors, _ = corpus(per, device=device)
    shape = BatchShape(24, 14 if per == "sentence" else 5, 5)
    static = StaticCorpus(tensors)
    batch = static.batch(static.cut(DOCUMENTS.to(device), shape)[0], 2, shape)
    return batch, [tensors.take(row[row >= 0].to(device)) for row in DOCUMENTS[0]]


def randn(*shape: int, scale: float = 0.3, device: str = "cpu") -> Tensor:
    return (torch.randn(*shape) * scale).to(device).requires_grad_()


def randomize(module: nn.Module) -> nn.Module:
    """Give norms the weights and running averages of a trained network."""
    with torch.no_grad():
        for norm in module.modules():
            if isinstance(norm, nn.BatchNorm1d):
                norm.weight.normal_(1, 0.3)
                norm.bias.normal_(0, 0.3)
                norm.running_mean.normal_(0, 0.3)
                norm.running_var.uniform_(0.5, 1.5)
    return module


def graph_of(kind: str, batch: Any) -> WordGraph | SentenceGraph:
    if kind.startswith("words"):
        return WordGraph(batch, master="without" not in kind, mean="summed" not in kind)
    return SentenceGraph(batch.graph_owner, batch.graph_count, kind == "path", "summed" not in kind)


def rows_of(graph: WordGraph | SentenceGraph) -> int:
    return len(graph.owner) + (graph.n if isinstance(graph, WordGraph) and graph.master else 0)


def config_of(hidden: int, **options: Any) -> MPADConfig:
    return MPADConfig(3, 20, 40, hidden=hidden, **options)


# ── Rounds of message passing ──


def round_cases() -> Iterator[Case]:
    def case(name, taken=True, training=True, per="sentence", times=20, kind="words", width=16, **options):
        def make():
            graph = graph_of(kind, batch_of(per, times))
            module = randomize(MessagePassing(config_of(width, **options), width, first=False))
            return module, (randn(rows_of(graph), width, scale=1), graph)

        return Case(f"round: {name}", make, taken, training)

    for style, options in STYLES.items():
        for kind in KINDS:
            for width in (16, 48, 64, 128):
                yield case(f"{style}, {kind}, {width}", kind=kind, width=width, **options)
        yield case(f"{style}, documents", per="document", **options)
        yield case(f"{style}, few rows", times=1, **options)
        yield case(f"{style}, a width that C does not take", False, width=24, **options)
        yield case(f"{style}, wider than C takes", False, kind="path", width=272, **options)
        yield case(f"{style}, neighbors only", False, **options, combine="identity")
        yield case(f"{style}, the other end of the MLP", False, **{**options, "mlp_relu": style == "authors"})
    yield case("norms without an MLP before", False, mlp_norm=True)
    yield case("an MLP before without norms", False, mlp_before=True)
    yield case("authors, running averages", False, training=False, **AUTHORS)


class FirstRound(nn.Module):
    """Word vectors with dropout, and the first round of messages."""

    def __init__(self, config: MPADConfig) -> None:
        super().__init__()
        self.network = randomize(MPAD(config))
        set_dropout_counter(self, DropoutCounter([3]))
        with torch.no_grad():
            self.network.vectors.copy_(torch.randn(self.network.vectors.shape))

    def forward(self, batch: Any) -> Tensor:
        graph = WordGraph(batch, self.network.config.master_node, True)
        return self.network.words.rounds[0](self.network.embed(batch), graph)


def first_round_cases() -> Iterator[Case]:
    for style, options in STYLES.items():
        for name, more in {
            "fixed vectors": {},
            "trained vectors": {"learn_vectors": True},
            "no dropout": {"dropout": 0.0, "learn_vectors": True},
            "without master": {"master_node": False},
        }.items():

            def make(options=options, more=more):
                return FirstRound(config_of(32, **options, **more)), (batch_of(),)

            yield Case(f"first round: {style}, {name}", make, tolerance=1e-4)
        narrow = lambda options=options: (FirstRound(config_of(24, learn_vectors=True, **options)), (batch_of(),))  # noqa: E731
        yield Case(f"first round: {style}, a width that C does not take", narrow, taken=False, tolerance=1e-4)


# ── Readout ──


def readout_cases() -> Iterator[Case]:
    def case(name, taken=True, training=True, batch=None, width=16, rounds=2, master=True, **options):
        def make():
            graph = WordGraph(batch_of() if batch is None else batch, master, True)
            skip = options.get("master_skip", True) and master
            module = randomize(Readout(config_of(width, **options), width, rounds, skip, more=0))
            return module, ([randn(rows_of(graph), width, scale=1) for _ in range(rounds)], graph)

        return Case(f"readout: {name}", make, taken, training)

    for style, options in STYLES.items():
        for width, rounds in ((16, 1), (48, 2), (64, 2), (16, 4)):
            yield case(f"{style}, {width} wide, {rounds} rounds", width=width, rounds=rounds, **options)
        yield case(f"{style}, without masters", width=32, master=False, **options)
        yield case(f"{style}, empty documents", batch=batch_of("document", 1), **options)
    yield case("masters among the words", False, master_skip=False)
    yield case("running averages", training=False)
    yield case("a width that C does not take", False, width=24)
    yield case("one graph has no variance", batch=corpus("document")[0].take(torch.tensor([0])))


def cases() -> list[Case]:
    return [*round_cases(), *first_round_cases(), *readout_cases()]
