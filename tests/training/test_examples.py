import numpy as np
import torch

from mpad.graph import graphs_of_words
from mpad.graph.batch import CorpusTensors
from mpad.training.examples import make_examples


def test_examples_are_cut_out_with_their_targets():
    graphs, _ = graphs_of_words(["a", "b c", "d e f"])
    examples = make_examples(CorpusTensors(graphs), np.array([2, 0]), np.array([10, 11, 12]))
    batch, targets, weights = examples.take(torch.tensor([1, 0]))
    assert batch.size.tolist() == [1, 3] and targets.tolist() == [10, 12] and weights.tolist() == [1, 1]
