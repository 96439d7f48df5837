"""Fused word-level inference, in parts and on several cores: the same answers."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
from tests.inference.test_network import random_model, texts

from mpad import native
from mpad.config import PRESETS
from mpad.inference import fused

pytestmark = pytest.mark.skipif(native.library is None, reason="the compiled kernels were not built")


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("variant", ["mpad", "clique"])
def test_parts_and_cores_change_nothing(preset, variant, monkeypatch):
    model = random_model(variant, hidden=32, **PRESETS[preset].network)
    graphs = model.pack(texts(2))
    expected = model.answer(graphs)
    monkeypatch.setattr(fused, "_PIECE", 50)
    monkeypatch.setattr(fused, "_ROWS", 20)
    monkeypatch.setattr(fused, "cores", lambda: 3)
    monkeypatch.setattr(fused, "_pool", None)
    found = model.answer(graphs)
    assert np.allclose(found.logits, expected.logits, atol=1e-5)
    assert np.allclose(found.word_attention, expected.word_attention, atol=1e-6)


@pytest.mark.parametrize("master", [True, False])
@pytest.mark.parametrize("given", [[""], ["", "", "? !"], ["", "x", ""], []])
def test_documents_without_words(master, given):
    model = random_model(hidden=16, master_node=master)
    graphs = model.pack(given)
    found, expected = model.answer(graphs), model.network.answer_by_torch(model.pack(given or [""]))
    assert found.logits.shape == (len(given), 3)
    assert np.allclose(found.logits, expected.logits[: len(given)], atol=1e-5)


def test_it_is_the_way_that_is_taken(monkeypatch):
    model = random_model(hidden=16)
    graphs = model.pack(texts(1))
    calls = []
    read = fused.FusedWords.read
    monkeypatch.setattr(fused.FusedWords, "read", lambda *given: (calls.append(given), read(*given))[1])
    model.answer(graphs)
    assert calls
    for options in ({"master_skip": False}, {"combine": "identity"}, {"hidden": 24}):
        calls.clear()
        random_model(**{"hidden": 16, **options}).answer(graphs)
        assert not calls


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_copies_answer_alike(copied):
    model = random_model(hidden=16)
    graphs = model.pack(texts(1))
    own = model.network.to_numpy()
    assert np.array_equal(own.answer(graphs).logits, copied(own).answer(graphs).logits)


@pytest.mark.parametrize("number", [-1, 10**6])
def test_words_that_are_not_in_the_table_are_refused(number):
    model = random_model(hidden=16)
    graphs = model.pack(texts(1))
    words = graphs.words.copy()
    words[3] = number
    with pytest.raises(IndexError):
        model.answer(replace(graphs, words=words))


def test_options_may_be_numpys():
    model = random_model(hidden=16, master_node=np.bool_(True), mlp_norm=np.bool_(False))
    assert model.answer(model.pack(texts(1))).logits.shape[1] == 3
