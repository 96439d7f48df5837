"""Cost against the length of one document: raw text → probabilities."""

import torch

from benchmarks.corpus import one_document
from benchmarks.measure import in_turn
from benchmarks.results import Row
from mpad.document_model import DocumentModel
from mpad.graph.build import GraphConfig
from mpad.labels import Labels
from mpad.models.config import MPADConfig
from mpad.models.mpad import MPAD
from mpad.text.tokenizer import as_tokenizer
from mpad.text.vocabulary import learn_vocabulary


def run() -> list[Row]:
    """1,000 to 1,000,000 words: a constant time a word is linear cost."""
    import numpy as np

    torch.set_num_threads(1)
    tokenizer = as_tokenizer("kim")
    vocabulary, _ = learn_vocabulary([one_document(1_000_000)], tokenizer)
    network = MPAD(MPADConfig(2, 300, vocabulary.n_rows)).eval()
    model = DocumentModel(tokenizer, vocabulary, GraphConfig(), network, Labels(np.array(["a", "b"])))
    rows = []
    for n_words in (1_000, 10_000, 100_000, 1_000_000):
        text = one_document(n_words)

        def answer(text: str = text) -> None:
            model.probabilities([text])

        answer()
        timing = in_turn({"answer": answer}, rounds=5)["answer"]
        nodes = len(model.pack([text]).words)
        each = f"{1e6 * timing.cpu / n_words:.2f} µs a word"
        rows.append(
            Row(f"one document of {n_words:,} words ({nodes:,} nodes)", f"{1000 * timing.cpu:.1f} ms", note=each)
        )
    return rows
