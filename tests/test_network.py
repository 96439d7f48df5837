import copy
import pickle
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from multiprocessing import get_context

import numpy as np
import pytest
import torch

import mpad.network
from mpad import MPADClassifier, inference
from mpad.ensemble import as_torch
from mpad.errors import InputError
from mpad.graph import graphs_of_words
from mpad.graph.batch import CorpusTensors
from mpad.network import find_device, in_batches


def test_no_texts_no_answers(fitted_flat):
    assert fitted_flat.model_.logits([]).shape == (0, 2)


def test_answers_come_in_order_whatever_the_batches(fitted_flat, fruit_corpus, monkeypatch):
    model = fitted_flat.model_
    texts = [*fruit_corpus[0], "", "word " * 500]
    together = model.logits(texts)
    monkeypatch.setattr(mpad.network, "_EVALUATION_NODES", 7)
    monkeypatch.setattr(inference.network, "_NODES", 7)
    assert np.allclose(model.logits(texts), together, atol=1e-5)
    model = replace(model, potentials=None)
    assert np.allclose(model.network.answer_by_torch(model.pack(texts)).logits, model.logits(texts), atol=1e-5)


def test_a_pickled_model_leaves_its_tables_behind(fitted_flat):
    model = fitted_flat.model_
    answered = model.logits(["an apple"])
    again = pickle.loads(pickle.dumps(model))
    assert model.network._folded is not None and again.network._folded is None
    assert np.allclose(again.logits(["an apple"]), answered, rtol=1e-6)  # sums of threads round differently


def _ask(model):
    return model.predict_proba(["an apple", "a saw"])


@pytest.mark.parametrize("start", ["spawn", "fork"])
def test_a_model_that_is_sent_away_still_answers_here(fitted, start):
    """Sending moves torch's memory; what NumPy had of it must not be left behind."""
    before = _ask(fitted)
    with ProcessPoolExecutor(1, mp_context=get_context(start)) as pool:
        there = pool.submit(_ask, fitted).result()
    assert np.array_equal(there, before) and np.array_equal(_ask(fitted), before)


def test_shared_memory_is_another_place(fitted):
    before = _ask(fitted)
    fitted.model_.network.share_memory()
    assert np.array_equal(_ask(fitted), before)


@pytest.mark.parametrize("assign", [False, True])
def test_other_weights_give_other_answers(fitted_flat, assign):
    model = replace(copy.deepcopy(fitted_flat.model_), potentials=None)
    before = model.logits(["an apple"])
    other = {
        name: value + 1 if value.is_floating_point() else value for name, value in model.network.state_dict().items()
    }
    model.network.load_state_dict(other, assign=assign)
    changed = model.logits(["an apple"])
    assert not np.allclose(changed, before)
    assert np.allclose(changed, model.network.answer_by_torch(model.pack(["an apple"])).logits, atol=1e-4)


def test_fits_in_several_threads_are_those_of_one(fruit_corpus):
    def fit(number):
        options = {"hidden": 16, "vector_size": 8, "max_epochs": 2, "random_state": 0, "device": "cpu"}
        return MPADClassifier("clique", **options).fit(*fruit_corpus).predict_proba(fruit_corpus[0])

    state = torch.random.get_rng_state()
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(fit, range(12)))
    assert all(np.array_equal(one, found[0]) for one in found)
    assert torch.equal(torch.random.get_rng_state(), state)  # nobody else's generator was touched


def test_a_pipeline_and_its_network_share_their_numbers(fitted, tmp_path):
    """The server answers without torch and explains with it: one copy of the weights."""
    fitted.save(tmp_path / "model")
    pipeline = inference.load(tmp_path / "model")
    model = as_torch(pipeline)
    assert model.network.to_numpy() is pipeline.network
    assert model.network.vectors.data_ptr() == pipeline.network.vectors.__array_interface__["data"][0]
    texts = ["an apple a day", ""]
    packed = model.pack(texts)
    assert np.allclose(model.network.answer_by_torch(packed).logits, pipeline.network.answer(packed).logits, atol=1e-4)
    assert np.allclose(model.predict_proba(texts), fitted.predict_proba(texts), atol=1e-4)


def test_devices():
    assert find_device("auto").type in ("cpu", "cuda") and find_device("cpu").type == "cpu"
    for name in ("toaster", "cuda:99"):
        with pytest.raises(InputError, match=f"device '{name}' cannot be used here"):
            find_device(name)


def test_batches_hold_about_as_many_words(monkeypatch):
    monkeypatch.setattr(mpad.network, "_EVALUATION_NODES", 5)  # masters are counted
    graphs, _ = graphs_of_words(["a", "b c", "d e f", "", "g"])
    batches = list(in_batches(CorpusTensors(graphs), torch.arange(5)))
    assert [batch.size.tolist() for batch in batches] == [[1], [2], [3, 0], [1]] or len(batches) > 1
    assert sum(batch.n_documents for batch in batches) == 5
