from itertools import product

import pytest
import torch

from mpad.config import DEFAULT_PRESET, PRESETS, VARIANTS, MPADConfig, find_preset
from mpad.errors import InputError
from mpad.model import MPAD


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_shapes_are_those_of_the_network(variant):
    for steps, gru, node, skip, learnt, before, norm, more in product((1, 3), *[(False, True)] * 7):
        config = MPADConfig(
            n_classes=3, vector_width=5, n_words=7, variant=variant, steps=steps, hidden=4, mlp_before=before,
            combine="gru" if gru else "identity", master_node=node, master_skip=skip, learn_vectors=learnt,
            mlp_norm=norm, attention_bias=more, attention_dense=more, score_tanh=norm, mlp_relu=not more,
        )  # fmt: skip
        with torch.device("meta"):
            network = MPAD(config)
        shapes = {name: tuple(value.shape) for name, value in network.state_dict().items()}
        assert config.tensor_shapes() == {**shapes, "vectors": (7, 5)}


@pytest.mark.parametrize("wrong", [{"hidden": 10**8}, {"steps": 10**9}, {"hidden": 2.5}, {"vector_width": 0}])
def test_sizes_that_make_no_sense_are_refused(wrong):
    with pytest.raises(InputError, match="must be a whole number from 1 to"):
        MPADConfig(**{"n_classes": 2, "vector_width": 3, "n_words": 4, **wrong})


def test_the_presets():
    assert set(PRESETS) == {"best", "paper", "authors"} and DEFAULT_PRESET == "best"
    assert find_preset("best").potentials and not find_preset("paper").potentials
    assert find_preset("authors").training == {"schedule": "halving"} and find_preset("paper").network == {}
    with pytest.raises(InputError, match="known: best, paper, authors"):
        find_preset("worst")


def test_best_follows_the_number_of_documents():
    best, paper = find_preset("best"), find_preset("paper")
    assert best.training_on(5_000)["max_epochs"] == 15 and best.training_on(5_000)["batch_size"] == 64
    assert best.training_on(200)["batch_size"] == 16
    assert best.training_on(50_000)["max_epochs"] == 8 and best.training_on(10**7)["max_epochs"] == 4
    assert paper.training_on(200) == paper.training_on(10**7) == {}
    assert best.training_on(10_000)["weight_decay"] == 1.0
    assert best.training_on(100_000)["weight_decay"] == pytest.approx(0.1), "as much an epoch as with 10,000"
