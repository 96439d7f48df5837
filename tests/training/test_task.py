import numpy as np
import torch

from mpad import network
from mpad.graph import graphs_of_words
from mpad.graph.batch import CorpusTensors
from mpad.network import in_batches
from mpad.training.task import make_examples


def test_documents_are_chosen_with_their_targets():
    graphs, _ = graphs_of_words(["a", "b c", "d e f"])
    examples = make_examples(CorpusTensors(graphs), np.array([2, 0]), np.array([10, 11, 12]))
    assert examples.documents.tolist() == [2, 0] and examples.targets.tolist() == [12, 10]
    assert examples.weights.tolist() == [1, 1] and len(examples) == 2


def test_batches_hold_about_as_many_words(monkeypatch):
    monkeypatch.setattr(network, "_EVALUATION_NODES", 5)  # masters are counted
    graphs, _ = graphs_of_words(["a", "b c", "d e f", "", "g"])
    batches = list(in_batches(CorpusTensors(graphs), torch.arange(5)))
    assert [batch.size.tolist() for batch in batches] == [[1], [2], [3, 0], [1]] or len(batches) > 1
    assert sum(batch.n_documents for batch in batches) == 5
