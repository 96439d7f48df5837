"""The second yardstick must be the same network, too."""

import pytest
import torch
from benchmarks.speed.padded import copy_weights

from mpad.config import PRESETS, MPADConfig
from mpad.graph import graphs_of_words
from mpad.graph.batch import CorpusTensors
from mpad.model import MPAD

TEXTS = ["a b c a b d. e f", "x", "b a. c. d e f g. a b", "", "the end, is near! c c c"]


@pytest.mark.parametrize("preset", PRESETS)
def test_pyg_and_ours_agree(preset):
    pytest.importorskip("torch_geometric")
    from benchmarks.speed.pyg import PyGMPAD, batches

    torch.manual_seed(0)
    graphs, vocabulary = graphs_of_words(TEXTS)
    config = MPADConfig(3, 6, vocabulary.n_rows, hidden=5, **PRESETS[preset].network)
    ours = MPAD(config).eval()
    ours.vectors.normal_()
    theirs = PyGMPAD(config, ours.vectors).eval()
    copy_weights(ours, theirs)
    (batch,) = batches(graphs, [0, 1, 2, 0, 1], vocabulary.n_rows, 5)
    expected = ours(CorpusTensors(graphs).take(torch.arange(len(TEXTS)))).logits
    assert torch.allclose(theirs(batch), expected, atol=1e-5)
