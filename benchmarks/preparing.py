"""Raw text → graphs, against the straightforward way."""

import torch

from benchmarks import straightforward
from benchmarks.corpus import Corpus, long_documents, short_documents
from benchmarks.measure import in_turn
from benchmarks.results import Row
from mpad.graph import graphs_of_words
from mpad.graph.batch import CorpusTensors
from mpad.text.tokenizer import as_tokenizer


def run() -> list[Row]:
    """One core each, whole corpora."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    rows = [_row(short_documents(10_000)), _row(long_documents(1_500))]
    torch.set_num_threads(threads)
    return rows


def _row(corpus: Corpus) -> Row:
    def ours() -> None:
        CorpusTensors(graphs_of_words(corpus.texts)[0])

    def theirs() -> None:
        straightforward.prepare(corpus.texts, corpus.labels, hierarchical=False)

    ours()
    timing = in_turn({"theirs": theirs, "ours 1": ours, "ours 2": ours, "ours 3": ours}, rounds=1)
    cpu = sorted(timing[f"ours {k}"].cpu for k in (1, 2, 3))[1]
    tokens = sum(len(as_tokenizer("kim").words(text)) for text in corpus.texts)
    return Row(
        f"raw text → packed graphs, {len(corpus.texts):,} {corpus.name}, one core",
        f"{tokens / cpu / 1e6:.2f} million words/s",
        f"{tokens / timing['theirs'].cpu / 1e6:.4f} million words/s",
        timing["theirs"].cpu / cpu,
        "100, and 1 million words/s",
        "yardstick: 13 regex passes, dict and scipy matrix a document, batches padded through lil_matrix",
    )
