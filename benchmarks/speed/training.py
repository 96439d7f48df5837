"""A training epoch on the CPU, against the same network over padded batches, and against the products' floor."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np
import torch
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.corpus import Corpus, imdb, polarity, reuters
from benchmarks.results import Row
from benchmarks.speed import straightforward
from benchmarks.speed.measure import in_turn, product_rate, ratios
from benchmarks.speed.padded import PaddedMPAD, train_epoch
from mpad import kernels
from mpad.config import PRESETS, MPADConfig, TrainingConfig, Variant
from mpad.graph import PackedGraphs, graphs_of_words
from mpad.graph.batch import CorpusTensors
from mpad.model import MPAD
from mpad.text.vocabulary import Vocabulary
from mpad.training.engine import Engine
from mpad.training.loop import shuffled_batches
from mpad.training.task import Task, make_examples

_PRODUCTS = {"aten::mm", "aten::addmm", "aten::addmm_", "aten::bmm", "aten::mv", "aten::addmv_"}
_PASSES = {"_Round", "_Readout", "_Rows", "_Mapped"}  # compiled; and "…Backward"
_BATCH = 128
_PRESETS = "paper", "authors"  # the network of `best` is that of `authors`


def run() -> list[Row]:
    """Flat and hierarchical, in the paper's and the authors' design; batch 128, 300-wide vectors, d = 64 (IMDB 128).

    The ratio is the median of the rounds' ratios, each of epochs right after one another: others use this machine too.
    """
    torch.set_num_threads(2)
    rows = []
    for corpus, hidden, target in ((polarity(2_560), 64, "4"), (reuters(512), 64, "12"), (imdb(384), 128, "7")):
        flat = _prepare(corpus, False)
        rows += [_row(flat, "mpad", preset, target, hidden) for preset in _PRESETS]
    sentences = _prepare(polarity(768), True)  # 86 % padding, as in the whole corpus; the first 640: 84
    variants: tuple[Variant, ...] = ("sentence-att", "clique", "path")
    rows += [_row(sentences, variant, preset, "15", 64) for preset in _PRESETS for variant in variants]
    rows += [row for preset in _PRESETS for row in _against_good_torch(polarity(2_560), preset)]
    return rows


def _against_good_torch(corpus: Corpus, preset: str) -> list[Row]:
    """Two yardsticks without padding: our own plain operators, and the same network in PyTorch Geometric."""
    graphs, vocabulary = graphs_of_words(corpus.texts)
    n_classes = max(corpus.labels) + 1
    config = MPADConfig(n_classes, 300, vocabulary.n_rows, **PRESETS[preset].network)
    epochs: dict[str, Callable[[], object]] = {
        "ours": our_epoch(config, graphs, corpus.labels),
        "plain operators": our_epoch(config, graphs, corpus.labels, fast=False),
    }
    if find_spec("torch_geometric") is not None:
        from benchmarks.speed import pyg

        network = pyg.PyGMPAD(config, torch.randn(vocabulary.n_rows, 300) * 0.1)
        optimiser = torch.optim.Adam([parameter for parameter in network.parameters() if parameter.requires_grad])
        batches = pyg.batches(graphs, corpus.labels, vocabulary.n_rows, _BATCH)
        epochs["PyTorch Geometric"] = lambda: pyg.train_epoch(network, optimiser, batches)
    for epoch in epochs.values():
        epoch()
    timing = in_turn(epochs)
    rows = []
    for name in list(epochs)[1:]:
        ratio, spread = ratios(timing[name].walls, timing["ours"].walls)
        rows.append(
            Row(
                f"epoch, mpad ({preset}), {len(corpus.texts):,} documents of {corpus.name}, against {name}",
                f"{timing['ours'].wall:.2f} s",
                f"{timing[name].wall:.2f} s",
                ratio,
                note="both packed; PyG's batches are made beforehand" if name == "PyTorch Geometric" else "both packed",
                spread=spread,
                text=corpus.text,
            )
        )
    return rows


@dataclass(frozen=True)
class Prepared:
    """A corpus, packed by us and padded by the yardstick."""

    corpus: Corpus
    graphs: PackedGraphs
    vocabulary: Vocabulary
    batches: list[straightforward.PaddedBatch]
    n_padded_words: int


def _prepare(corpus: Corpus, hierarchical: bool) -> Prepared:
    graphs, vocabulary = graphs_of_words(corpus.texts, per="sentence" if hierarchical else "document")
    batches, words = straightforward.prepare(corpus.texts, corpus.labels, hierarchical, _BATCH)
    return Prepared(corpus, graphs, vocabulary, batches, len(words) + 1)


def our_epoch(config: MPADConfig, graphs: PackedGraphs, labels: list[int], fast: bool = True) -> Callable[[], None]:
    """Return a function that trains a fresh network for an epoch, by kernels or by the plain model."""
    torch.manual_seed(0)
    network = MPAD(config)
    network.vectors.normal_(std=0.1)
    corpus = CorpusTensors(graphs)
    examples = make_examples(corpus, np.arange(len(graphs)), np.array(labels))
    engine, generator = Engine([Task(network, examples, examples, TrainingConfig())]), np.random.default_rng(0)
    kernels.accelerate(engine.network, fast)

    def epoch() -> None:
        engine.prepare([shuffled_batches(len(examples), _BATCH, generator)])
        engine.pass_over()

    return epoch


def _row(prepared: Prepared, variant: Variant, preset: str, target: str, hidden: int) -> Row:
    corpus, graphs, batches = prepared.corpus, prepared.graphs, prepared.batches
    n_classes = max(corpus.labels) + 1
    config = MPADConfig(n_classes, 300, prepared.vocabulary.n_rows, variant, hidden=hidden, **PRESETS[preset].network)
    ours = our_epoch(config, graphs, corpus.labels)
    padded = PaddedMPAD(config, torch.randn(prepared.n_padded_words, 300) * 0.1)
    trained = [parameter for parameter in padded.parameters() if parameter.requires_grad]
    padded_optimiser = torch.optim.Adam(trained)

    def theirs() -> None:
        train_epoch(padded, padded_optimiser, batches)

    ours()
    timing = in_turn({"ours": ours, "theirs": theirs, "ours again": ours})
    wall = (timing["ours"].wall + timing["ours again"].wall) / 2
    around = [(a + b) / 2 for a, b in zip(timing["ours"].walls, timing["ours again"].walls, strict=True)]
    ratio, spread = ratios(timing["theirs"].walls, around)
    nodes = len(graphs.words) + graphs.n_graphs
    padding = 1 - nodes / sum(batch.ids.numel() for batch in batches)
    plain = our_epoch(config, graphs, corpus.labels, fast=False)
    floor = _operations(plain) / product_rate(outer=3 * hidden, inner=hidden)
    products, passes = _shares(ours)
    return Row(
        f"epoch, {variant} ({preset}), {len(corpus.texts):,} documents of {corpus.name}",
        f"{wall:.2f} s, {nodes / wall / 1000:.0f} thousand nodes/s",
        f"{timing['theirs'].wall:.2f} s",
        ratio,
        target,
        f"{100 * padding:.0f} % of the yardstick's nodes are padding; of our time {100 * products:.0f} % is torch's "
        f"products and {100 * passes:.0f} % passes, compiled or not, of products and what stands between them; "
        f"{wall / floor:.1f} times the floor ({floor:.2f} s: all our products at this machine's rate)",
        spread,
        corpus.text,
    )


def _operations(epoch: Callable[[], None]) -> int:
    """Count the operations of the products in an epoch of the plain model: torch does not see those of kernels."""
    with FlopCounterMode(display=False) as counter:
        epoch()
    return int(counter.get_total_flops())


def _shares(epoch: Callable[[], None]) -> tuple[float, float]:
    """What share of the time torch's products take, and what share our own passes."""
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        epoch()
    times = {event.key: event.self_cpu_time_total for event in profiler.key_averages()}
    total = sum(times.values())
    passes = sum(time for key, time in times.items() if key.removesuffix("Backward") in _PASSES)
    return sum(time for key, time in times.items() if key in _PRODUCTS) / total, passes / total
