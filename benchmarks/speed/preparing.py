"""Raw text → graphs, against the straightforward way."""

import torch

from benchmarks.corpus import Corpus, long_documents, short_documents
from benchmarks.results import Row
from benchmarks.speed import straightforward
from benchmarks.speed.measure import in_turn, ratios
from mpad.graph import graphs_of_words
from mpad.graph.batch import CorpusTensors
from mpad.text.tokenizer import as_tokenizer

_BATCH = 128


def run() -> list[Row]:
    """One core each, whole corpora."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    rows = [_row(short_documents(10_000)), _row(long_documents(1_500))]
    torch.set_num_threads(threads)
    return rows


def _row(corpus: Corpus) -> Row:
    def ours() -> None:
        tensors = CorpusTensors(graphs_of_words(corpus.texts)[0])
        for rows in torch.arange(len(corpus.texts)).split(_BATCH):
            tensors.take(rows)

    def theirs() -> None:
        straightforward.prepare(corpus.texts, corpus.labels, hierarchical=False, batch_size=_BATCH)

    ours()
    timing = in_turn({"theirs": theirs, "ours": ours})
    ratio, spread = ratios(timing["theirs"].cpus, timing["ours"].cpus)
    tokens = sum(len(as_tokenizer("kim").words(text)) for text in corpus.texts)
    return Row(
        f"raw text → graphs in batches, {len(corpus.texts):,} {corpus.name}, one core",
        f"{tokens / timing['ours'].cpu / 1e6:.2f} million words/s",
        f"{tokens / timing['theirs'].cpu / 1e6:.4f} million words/s",
        ratio,
        "100, and 1 million words/s",
        "yardstick: 13 regex passes, dict and scipy matrix a document, batches padded through lil_matrix; ours packed, "
        f"batches of {_BATCH} for both",
        spread,
        corpus.text,
    )
