import numpy as np


def test_no_texts_no_answers(fitted_flat):
    assert fitted_flat.model_.logits([]).shape == (0, 2)


def test_answers_come_in_order_whatever_the_batches(fitted_flat, fruit_corpus, monkeypatch):
    from mpad.training import loop

    texts = [*fruit_corpus[0], "", "word " * 500]
    together = fitted_flat.model_.logits(texts)
    monkeypatch.setattr(loop, "_EVALUATION_NODES", 7)
    assert np.allclose(fitted_flat.model_.logits(texts), together, atol=1e-5)


def test_summary_is_plain(fitted_flat):
    summary = fitted_flat.model_.summary()
    assert summary["classes"] == ["fruit", "tool"] and summary["vectors"] == "learnt"
