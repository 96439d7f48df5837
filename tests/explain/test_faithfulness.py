import numpy as np
import pytest

from mpad.errors import InputError
from mpad.explain.faithfulness import RANDOM, SHARES, best, measure


@pytest.fixture(scope="module")
def measured(fitted_flat, fruit_corpus):
    return {one.method: one for one in measure(fitted_flat.model_, fruit_corpus[0][:30], ["occlusion", "gradients"])}


def test_a_good_order_beats_a_random_one(measured):
    for method in ("occlusion", "gradients"):
        one = measured[method]
        assert one.gain - one.gain_error > 0 and one.documents == 30 and one.seconds > 0
        assert one.deletion < measured[RANDOM].deletion and one.insertion > measured[RANDOM].insertion
    assert measured[RANDOM].gain == 0 and best(list(measured.values())).method != RANDOM


def test_curves_begin_and_end_where_they_must(measured, fitted_flat, fruit_corpus):
    probabilities = fitted_flat.predict_proba(fruit_corpus[0][:30])
    columns = probabilities.argmax(1)
    whole = probabilities.max(1).mean()
    empty = fitted_flat.predict_proba([""])[0][columns].mean()
    for one in measured.values():
        assert one.deletion_curve[0] == pytest.approx(whole, abs=1e-5) == one.insertion_curve[-1]
        assert one.deletion_curve[-1] == pytest.approx(empty, abs=1e-5) == one.insertion_curve[0]
        assert one.deletion == pytest.approx(np.trapezoid(one.deletion_curve, SHARES))


def test_the_worst_order_loses(fitted_flat, fruit_corpus, monkeypatch):
    from mpad.explain import faithfulness

    right = faithfulness.weigh

    def upside_down(document, column, method):
        parts = right(document, column, "occlusion")
        return type(parts)(-parts.words, parts.edges, parts.sentences)

    monkeypatch.setattr(faithfulness, "weigh", upside_down)
    (worst, _) = measure(fitted_flat.model_, fruit_corpus[0][:20], ["occlusion"])
    assert worst.gain + worst.gain_error < 0


def test_nothing_to_measure(fitted_flat):
    with pytest.raises(InputError, match="at least two words"):
        measure(fitted_flat.model_, ["", "one", "two words"], ["attention"])
