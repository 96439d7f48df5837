"""The yardstick must be the same network, or the ratios mean nothing."""

import pytest
import torch
from benchmarks.speed.padded import PaddedMPAD, copy_weights
from benchmarks.speed.straightforward import prepare

from mpad.config import PRESETS, VARIANTS, MPADConfig
from mpad.graph import graphs_of_words
from mpad.graph.batch import CorpusTensors
from mpad.model import MPAD

TEXTS = ["a b c a b d. e f", "x", "b a. c. d e f g. a b", "", "the end, is near! c c c"]


@pytest.mark.filterwarnings("ignore:Sparse")  # older torch announces its sparse tensors
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("preset", PRESETS)
def test_padded_and_packed_agree(variant, preset):
    torch.manual_seed(0)
    graphs, vocabulary = graphs_of_words(TEXTS, per="document" if variant == "mpad" else "sentence")
    config = MPADConfig(3, 6, vocabulary.n_rows, variant, hidden=5, **PRESETS[preset].network)
    packed = MPAD(config).eval()
    packed.vectors.normal_()
    batches, words = prepare(TEXTS, [0, 1, 2, 0, 1], hierarchical=variant != "mpad")
    vectors = torch.zeros(len(words) + 1, 6)
    for word, number in words.items():
        vectors[number] = packed.vectors[vocabulary.id(word)]
    padded = PaddedMPAD(config, vectors).eval()
    copy_weights(packed, padded)
    ours = packed(CorpusTensors(graphs).take(torch.arange(len(TEXTS)))).logits
    assert torch.allclose(ours, padded(batches[0]), atol=1e-5)
