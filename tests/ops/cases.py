"""Every operator × option, as arguments for its reference and its implementations."""

from dataclasses import dataclass
from itertools import product
from typing import Any

import torch

from mpad import ops
from mpad.graph import graphs_of_words
from mpad.graph.batch import CorpusTensors, stack_batches
from mpad.graph.static_batch import BatchShape, StaticCorpus
from mpad.ops import DropoutState, RoundWeights, UpdateWeights, Words
from mpad.ops.embedding import NO_DROPOUT

TEXTS = ["a b c a b d. e f", "", "x", "b a. c. d e f g. a b", "the end. is near", "c c c", "a b. b a. a b a c a"]
DOCUMENTS = torch.tensor([[[0, 2, 3, 5], [6, 1, 4, -1]]])  # (steps, models, slots)


@dataclass(frozen=True)
class Case:
    """Arguments for an operator, and whether the fast implementation of a device should take them."""

    operator: str
    name: str
    device: str  # whose implementation: "CPU" or "CUDA"
    arguments: Any  # () → list of arguments, made anew each time
    taken: bool = True
    tolerance: float = 2e-5

    def __str__(self) -> str:
        return f"{self.operator}-{self.device}-{self.name}"


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


def stacked_batch(per="sentence"):
    tensors, _ = corpus(per)
    return stack_batches([tensors.take(row[row >= 0]) for row in DOCUMENTS[0]])


def randn(*shape, scale=0.3, device="cpu"):
    return (torch.randn(*shape) * scale).to(device).requires_grad_()


# ── Rounds of messages ──


def round_weights(in_width, width, models=(), before=False, norm=False, gate=True, project=False, device="cpu"):
    def weights(*shape):
        return randn(*models, *shape, device=device)

    def affine(n_in):
        return weights(width, n_in), weights(width)

    norms = (weights(width), weights(width)) if norm else (None, None)
    first = (*affine(in_width), *norms, *affine(width)) if before else (None,) * 6
    own = affine(width if before else in_width)
    gates = weights(3 * width), weights(3 * width, width), weights(2 * width, width), weights(width, width)
    again = (weights(width), weights(width)) if norm else (None, None)
    return RoundWeights(*first, *own, *again, *affine(width), *(gates if gate else (None,) * 4))


def averages(n, width, models=(), device="cpu"):
    return [
        x
        for _ in range(n)
        for x in (torch.rand(*models, width, device=device), torch.rand(*models, width, device=device) + 0.5)
    ]


def graphs_of(kind, batch, masked=False):
    return {
        "words": lambda: ops.word_graph(batch, True, True, masked),
        "words without master": lambda: ops.word_graph(batch, False, True, masked),
        "words, summed": lambda: ops.word_graph(batch, True, False, masked),
        "clique": lambda: ops.sentence_graph(batch, False, True),
        "clique, summed": lambda: ops.sentence_graph(batch, False, False),
        "path": lambda: ops.sentence_graph(batch, True, True),
    }[kind]()


def rows_of(kind, batch):
    words, graphs = batch.n_words // batch.n_models, batch.n_graphs // batch.n_models
    return {"words": words + graphs, "words, summed": words + graphs, "words without master": words}.get(kind, graphs)


def round_arguments(batch, kind, width, given=False, by_batch=True, device="cpu", relu=None, **options):
    models = () if batch.n_models == 1 else (batch.n_models,)
    normed = options.get("norm", False)
    graph = graphs_of(kind, batch, masked=normed)
    rows = rows_of(kind, batch)
    weights = round_weights(width, width, models, device=device, **options)
    h = randn(*models, rows, width, scale=1, device=device)
    x = randn(*models, rows, width, scale=1, device=device) if given else None
    if given and options.get("before"):
        h = None
    running = averages(options.get("before", False) * normed + normed, width, models, device)
    return [h, x, graph, weights, running, by_batch, 0.1, 1e-5, not options.get("before") if relu is None else relu]


AUTHORS = {"before": True, "norm": True}
KINDS = "words", "words without master", "words, summed", "clique", "clique, summed", "path"


def round_cases():
    def cpu(name, taken=True, times=20, per="sentence", **options):
        batch = batch_of(per, times)
        return Case("message_round", name, "CPU", lambda: round_arguments(batch, **options), taken)

    for kind in KINDS:
        for width in (16, 48, 64, 128):
            yield cpu(f"paper, {kind}, {width}", kind=kind, width=width)
            yield cpu(f"authors, {kind}, {width}", kind=kind, width=width, **AUTHORS)
    for style, options in (("paper", {}), ("authors", AUTHORS)):
        yield cpu(f"{style}, first map given", kind="words", width=32, given=True, **options)
        yield cpu(f"{style}, documents", kind="words", width=16, per="document", **options)
        yield cpu(f"{style}, few rows", kind="words", width=16, times=1, **options)
        yield cpu(f"{style}, a width that C does not take", False, kind="words", width=24, **options)
        yield cpu(f"{style}, wider than C takes", False, kind="path", width=272, **options)
        yield cpu(f"{style}, neighbours only", False, kind="words", width=16, gate=False, **options)
        yield cpu(f"{style}, the other end of the MLP", False, kind="words", width=16, relu=bool(options), **options)
    yield cpu("norms without an MLP before", False, kind="words", width=16, norm=True)
    yield cpu("an MLP before without norms", False, kind="words", width=16, before=True)
    yield cpu("authors, frozen norms", False, kind="words", width=16, by_batch=False, **AUTHORS)
    stacked = stacked_batch()
    yield Case("message_round", "stacked", "CPU", lambda: round_arguments(stacked, "words", 16), False)


def cuda_round_cases(device):
    batch, _ = static_batch("sentence", device)

    def cuda(name, taken=True, tolerance=1e-4, **options):
        def arguments():
            return round_arguments(batch, device=device, **options)

        return Case("message_round", name, "CUDA", arguments, taken, tolerance)

    for kind in KINDS[:3]:
        yield cuda(f"paper, {kind}", kind=kind, width=6)
    yield cuda("paper, first map given", kind="words", width=64, given=True)
    yield cuda("paper, wider than one kernel", kind="words", width=72)
    yield cuda("paper, neighbours only", False, kind="words", width=6, gate=False)
    yield cuda("authors, put together of smaller operators", False, 1e-3, kind="words", width=6, **AUTHORS)
    yield cuda("paper, clique", False, kind="clique", width=6)
    for kind in KINDS[:3]:

        def arguments(kind=kind):
            x = randn(2, rows_of(kind, batch), 6, scale=1, device=device)
            return [x, graphs_of(kind, batch)]

        yield Case("aggregate", kind, "CUDA", arguments, tolerance=1e-4)
    for relu, mapped, width in product((True, False), (True, False), (6, 72)):

        def update(relu=relu, mapped=mapped, width=width):
            parts = round_weights(width, width, (2,), device=device)
            last = (parts.w2, parts.b2) if mapped else (None, None)
            h, x = randn(2, 9, width, device=device), randn(2, 9, width, device=device)
            return [h, x, UpdateWeights(*last, *parts[-4:]), relu]

        yield Case("gated_update", f"{width} wide, relu {relu}, mapped {mapped}", "CUDA", update, tolerance=1e-4)


# ── Readout ──


def readout_arguments(
    batch, width, rounds=2, skip=True, by_batch=True, authors=False, master=True, every=None, device="cpu"
):
    models = () if batch.n_models == 1 else (batch.n_models,)
    segments, _ = ops.batch_segments(batch)
    words, graphs = batch.n_words // batch.n_models, batch.n_graphs // batch.n_models
    states = [randn(*models, words + graphs * master, width, scale=1, device=device) for _ in range(rounds)]
    weights = []
    for _ in range(rounds):
        dense = (
            [randn(*models, width, width, device=device), randn(*models, width, device=device)]
            if authors
            else [None, None]
        )
        bias = randn(*models, width, device=device) if authors else None
        weights += [randn(*models, width, width, device=device), bias, randn(*models, 1, width, device=device), *dense]
    every = rounds * width * (1 + skip)
    norm = randn(*models, every, device=device), randn(*models, every, device=device)
    dense = randn(*models, width, every, device=device), randn(*models, width, device=device)
    running = averages(1, every, models, device)
    return [states, segments, weights, *norm, *dense, running, by_batch, 0.1, 1e-5, skip, authors]


def readout_cases():
    batch, one = batch_of(), batch_of("document", 1)
    single = corpus()[0].take(torch.tensor([0]))

    def cpu(name, taken=True, batch=batch, **options):
        return Case("readout", name, "CPU", lambda: readout_arguments(batch, **options), taken)

    for authors in (False, True):
        for width, rounds in ((16, 1), (48, 2), (64, 2), (16, 4)):
            yield cpu(f"{width} wide, {rounds} rounds, authors {authors}", width=width, rounds=rounds, authors=authors)
        yield cpu(f"without masters, authors {authors}", width=32, skip=False, master=False, authors=authors)
        yield cpu(f"empty documents, authors {authors}", batch=one, width=16, authors=authors)
    yield cpu("masters among the words", False, width=16, skip=False)
    yield cpu("frozen norm", False, width=16, by_batch=False)
    yield cpu("a width that C does not take", False, width=24)
    yield cpu("too wide a dense layer", False, width=64, rounds=4)
    yield cpu("one graph has no variance", False, batch=single if single.n_graphs == 1 else one, width=24)
    stacked = stacked_batch()
    yield Case("readout", "stacked", "CPU", lambda: readout_arguments(stacked, 16), False)


def cuda_readout_cases(device):
    batch, _ = static_batch("sentence", device)
    segments, _ = ops.batch_segments(batch)
    n = batch.node.shape[1]
    for bounded in (True, False):
        for width in (6, 72):

            def arguments(bounded=bounded, width=width):
                h = randn(2, n, width, scale=1, device=device)
                bias = randn(2, width, device=device) if bounded else None
                return [
                    h,
                    segments,
                    randn(2, width, width, device=device),
                    bias,
                    randn(2, 1, width, device=device),
                    bounded,
                ]

            yield Case("attention", f"{width} wide, bounded {bounded}", "CUDA", arguments, tolerance=1e-4)
    mask = batch.padding.graphs
    for relu in (True, False):
        for before in (True, False):

            def norm(relu=relu, before=before):
                x = randn(2, mask.shape[1], 6, scale=1, device=device)
                bias = randn(2, 6, device=device).detach() if before else None
                learnt = randn(2, 6, device=device), randn(2, 6, device=device)
                return [x, bias, *learnt, averages(1, 6, (2,), device), mask, True, 0.1, 1e-5, relu]

            yield Case("batch_norm", f"relu {relu}, before {before}", "CUDA", norm, tolerance=1e-4)


# ── Embedding, dropout, linear, Adam ──


def dropout_state(n, device="cpu"):
    return DropoutState(*[torch.tensor(part[:n], device=device) for part in ([3, 4], [5, 6], [128, 50])], 1)


def embedding_cases():
    words = torch.tensor([2, 5, 2, 0, 5, 7])

    def cpu(name, taken=True, index=words, width=16, n=1, models=(), state=None, table=()):
        def arguments():
            weights = [randn(*models, width, 20) for _ in range(n)]
            given = state if state is not None else dropout_state(max(len(models) and models[0], 1))
            return [randn(*table, 9, 20), Words(index, None, 3), weights, given]

        return Case("embedding_linear", name, "CPU", arguments, taken)

    yield cpu("one map")
    yield cpu("two maps", n=2, width=64)
    yield cpu("without dropout", state=NO_DROPOUT)
    yield cpu("no words", index=words[:0])
    yield cpu("a width that C does not take", False, width=6)
    yield cpu("three maps", False, n=3)
    several = torch.tensor([[2, 5, 2, -1], [1, 1, 3, 8]])
    yield cpu("stacked, one table", index=several, models=(2,))
    yield cpu("stacked, own tables", index=several, models=(2,), table=(2,))
    for models in (1, 2):
        yield Case(
            "dropout", f"{models} models", "CPU", lambda models=models: [randn(models, 7, 5), dropout_state(models)]
        )
    yield Case("dropout", "nothing dropped", "CPU", lambda: [randn(7, 5), NO_DROPOUT])
    batch = batch_of()
    for master in (True, False):
        weights = [batch.weight, batch.target, batch.size, batch.n_words, master]
        yield Case("mean_weights", f"master {master}", "CPU", lambda weights=weights: weights)
    yield Case("adam_step", "two models", "CPU", lambda: adam_arguments("cpu"))
    yield Case("adam_step", "double", "CPU", lambda: adam_arguments("cpu", torch.float64), False)


def adam_arguments(device, dtype=torch.float32):
    torch.manual_seed(0)

    def numbers():
        return [torch.rand(2, 40, dtype=dtype, device=device), torch.rand(2, 7, dtype=dtype, device=device)]

    active, steps = torch.tensor([1, 0], device=device), torch.tensor([3, 0], device=device)
    return [
        numbers(),
        numbers(),
        numbers(),
        numbers(),
        torch.tensor([0.1, 0.2], dtype=dtype, device=device),
        steps,
        active,
    ]


def cuda_embedding_cases(device):
    batch, _ = static_batch("document", device)
    n_words = int(batch.corpus.words.max()) + 1
    for name, state in (("dropped", dropout_state(2, device)), ("without dropout", NO_DROPOUT)):
        for table in ((), (2,)):

            def arguments(state=state, table=table):
                weights = [randn(2, 6, 5, device=device), randn(2, 6, 5, device=device)]
                words = Words(batch.corpus.words, batch.node, 5)
                return [randn(*table, n_words, 5, device=device), words, weights, state]

            yield Case("embedding_linear", f"{name}, tables {table}", "CUDA", arguments, tolerance=1e-4)
    yield Case("dropout", "two models", "CUDA", lambda: [randn(2, 7, 5, device=device), dropout_state(2, device)])
    for n_out, n_in in ((6, 5), (64, 64), (128, 300), (130, 129)):
        for bias in (True, False):

            def linear(n_out=n_out, n_in=n_in, bias=bias):
                b = randn(2, n_out, device=device) if bias else None
                return [randn(2, 70, n_in, device=device), randn(2, n_out, n_in, device=device), b]

            yield Case("stacked_linear", f"{n_in} to {n_out}, bias {bias}", "CUDA", linear, tolerance=1e-4)
    yield Case("adam_step", "two models", "CUDA", lambda: adam_arguments(device))
    for looks_back in (True, False):

        def directional(looks_back=looks_back):
            real = torch.arange(5, device=device) < torch.tensor([5, 1, 3], device=device)[:, None]
            return [*[randn(3, 5, 70, device=device) for _ in range(3)], real, looks_back, 5.0]

        yield Case("directional_attention", f"looks back {looks_back}", "CUDA", directional, tolerance=2e-4)


def cpu_cases():
    return [*round_cases(), *readout_cases(), *embedding_cases()]


def cuda_cases(device):
    return [*cuda_round_cases(device), *cuda_readout_cases(device), *cuda_embedding_cases(device)]
