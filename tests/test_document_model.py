import pickle

import numpy as np


def test_no_texts_no_answers(fitted_flat):
    assert fitted_flat.model_.logits([]).shape == (0, 2)


def test_answers_come_in_order_whatever_the_batches(fitted_flat, fruit_corpus, monkeypatch):
    from mpad.runtime import network
    from mpad.training import eager

    model = fitted_flat.model_
    texts = [*fruit_corpus[0], "", "word " * 500]
    together = model.logits(texts)
    monkeypatch.setattr(eager, "_EVALUATION_NODES", 7)
    monkeypatch.setattr(network, "_NODES", 7)
    assert np.allclose(model.logits(texts), together, atol=1e-5)
    assert np.allclose(model.answer_by_torch(model.pack(texts)).logits, together, atol=1e-5)


def test_a_pickled_model_leaves_its_tables_behind(fitted_flat):
    model = fitted_flat.model_
    answered = model.logits(["an apple"])
    again = pickle.loads(pickle.dumps(model))
    assert vars(model)["_made"] is not None and vars(again)["_made"] is None
    assert np.array_equal(again.logits(["an apple"]), answered)


def test_summary_is_plain(fitted_flat):
    summary = fitted_flat.model_.summary()
    assert summary["classes"] == ["fruit", "tool"] and summary["vectors"] == "learnt"
