"""A training epoch on the CPU, against the same network over padded batches."""

from dataclasses import dataclass

import numpy as np
import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks import straightforward
from benchmarks.corpus import Corpus, long_documents, short_documents
from benchmarks.measure import in_turn
from benchmarks.padded import PaddedMPAD, train_epoch
from benchmarks.results import Row
from mpad.graph import PackedGraphs, graphs_of_words
from mpad.graph.batch import CorpusTensors
from mpad.models.config import MPADConfig, Variant
from mpad.models.mpad import MPAD
from mpad.text.vocabulary import Vocabulary
from mpad.training.adam import FlatAdam
from mpad.training.examples import Examples, make_examples
from mpad.training.loop import run_epoch

_PRODUCTS = {"aten::mm", "aten::addmm", "aten::addmm_", "aten::bmm", "aten::mv", "aten::addmv_"}


def run() -> list[Row]:
    """Flat and hierarchical, in the paper's and the authors' design; d = 64, batch 128, 300-wide vectors."""
    torch.set_num_threads(2)
    short, long = _prepare(short_documents(10_000), False), _prepare(long_documents(768), False)
    rows = [_row(short, "mpad", authors, target="3") for authors in (True, False)]
    rows += [_row(long, "mpad", authors, target="7") for authors in (True, False)]
    sentences, many = _prepare(short_documents(2_560), True), _prepare(long_documents(128, seed=1), True)
    variants: tuple[Variant, ...] = ("sentence-att", "clique", "path")
    rows += [_row(sentences, variant, authors, target="9") for authors in (True, False) for variant in variants]
    return [*rows, _row(many, "clique", authors=False, target="9")]


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
    batches, words = straightforward.prepare(corpus.texts, corpus.labels, hierarchical)
    return Prepared(corpus, graphs, vocabulary, batches, len(words) + 1)


def _row(prepared: Prepared, variant: Variant, authors: bool, target: str) -> Row:
    corpus, graphs, batches = prepared.corpus, prepared.graphs, prepared.batches
    config = MPADConfig(2, 300, prepared.vocabulary.n_rows, variant, authors=authors)
    torch.manual_seed(0)
    packed = MPAD(config)
    packed.vectors.normal_(std=0.1)
    examples = make_examples(CorpusTensors(graphs), np.arange(len(graphs)), np.array(corpus.labels))
    optimiser = FlatAdam(packed.parameters(), 0.001)
    generator = np.random.default_rng(0)

    padded = PaddedMPAD(config, torch.randn(prepared.n_padded_words, 300) * 0.1)
    trained = [parameter for parameter in padded.parameters() if parameter.requires_grad]
    padded_optimiser = torch.optim.Adam(trained)

    def ours() -> None:
        run_epoch(packed, optimiser, examples, 128, generator)

    def theirs() -> None:
        train_epoch(padded, padded_optimiser, batches)

    ours()
    timing = in_turn({"ours 1": ours, "theirs": theirs, "ours 2": ours}, rounds=1)
    wall = (timing["ours 1"].wall + timing["ours 2"].wall) / 2
    nodes = len(graphs.words) + graphs.n_graphs
    padding = 1 - nodes / sum(batch.ids.numel() for batch in batches)
    return Row(
        f"epoch, {variant} ({'authors' if authors else 'paper'}), {len(corpus.texts):,} {corpus.name}",
        f"{wall:.2f} s, {nodes / wall / 1000:.0f} thousand nodes/s",
        f"{timing['theirs'].wall:.2f} s",
        timing["theirs"].wall / wall,
        target,
        f"{100 * padding:.0f} % of the yardstick's nodes are padding; "
        f"{100 * _share_of_products(packed, optimiser, examples):.0f} % of our time is matrix products",
    )


def _share_of_products(model: MPAD, optimiser: FlatAdam, examples: Examples) -> float:
    some = Examples(examples.corpus, examples.documents[:640], examples.targets[:640], examples.weights[:640])
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        run_epoch(model, optimiser, some, 128, np.random.default_rng(0))
    events = profiler.key_averages()
    total = sum(event.self_cpu_time_total for event in events)
    return float(sum(event.self_cpu_time_total for event in events if event.key in _PRODUCTS) / total)
