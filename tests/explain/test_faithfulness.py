import numpy as np
import pytest
import torch

from mpad.errors import InputError
from mpad.explain import explain, faithfulness
from mpad.explain.document import UNITS, Parts, PartWeights, log_odds, trace_document
from mpad.explain.faithfulness import RANDOM, SHARES, best, mean_and_error, measure
from mpad.graph import GraphConfig, build_graphs

REPEATED = "plum and plum, but not a saw"


@pytest.fixture(scope="module")
def measured(fitted_flat, fruit_corpus):
    return {one.method: one for one in measure(fitted_flat.model_, fruit_corpus[0][:30], ["occlusion", "gradients"])}


def lead(model, graphs):
    return log_odds(torch.from_numpy(model.answer(graphs).logits), 0, False).numpy()


def test_a_good_order_beats_a_random_one(measured):
    for method in ("occlusion", "gradients"):
        one = measured[method]
        assert one.gain - one.gain_error > 0 and one.documents == 30 and one.seconds > 0 and one.unit == "word"
        assert one.deletion < measured[RANDOM].deletion and one.insertion > measured[RANDOM].insertion
        assert one.lead(measured[RANDOM]) == pytest.approx((one.gain, one.gain_error))
    assert measured[RANDOM].gain == 0 and best(list(measured.values())).method != RANDOM


def test_curves_begin_and_end_where_they_must(measured, fitted_flat, fruit_corpus):
    probabilities = fitted_flat.predict_proba(fruit_corpus[0][:30])
    columns = probabilities.argmax(1)
    whole = probabilities.max(1).mean()
    empty = fitted_flat.predict_proba([""])[0][columns].mean()
    for one in measured.values():
        assert one.deletion_curve[0] == pytest.approx(whole, abs=1e-5) == one.insertion_curve[-1]
        assert one.deletion_curve[-1] == pytest.approx(empty, abs=1e-5) == one.insertion_curve[0]


def test_the_area_is_over_what_has_gone(fitted_flat):
    """Of three words there are four points, whatever the shares that curves are shown at."""
    texts = ["plum was not", "had drill in"]
    (one, _) = measure(fitted_flat.model_, texts, ["occlusion"])
    points = np.array(one.deletion_curve)[[0, 3, 7, 10]]
    assert one.deletion == pytest.approx(np.trapezoid(points, [0, 1 / 3, 2 / 3, 1]))
    assert one.deletion != pytest.approx(np.trapezoid(one.deletion_curve, SHARES))


def test_a_word_goes_with_all_its_occurrences(fitted_flat):
    """By hand: what the answer is without both plums is what the word's weight says, shared by the two."""
    model = fitted_flat.model_
    by_word, by_occurrence = (explain(model, REPEATED, "fruit", "occlusion", unit=u) for u in ("word", "occurrence"))
    whole, one_gone, both_gone = -fitted_flat.decision_function(
        [REPEATED, "and plum, but not a saw", "and, but not a saw"]
    )
    plums = [word.weight for word in by_word.words if word.word == "plum"]
    assert plums[0] == plums[1] and sum(plums) == pytest.approx(whole - both_gone, abs=1e-3)
    assert by_occurrence.words[0].weight == pytest.approx(whole - one_gone, abs=1e-3)
    assert by_word.words[1].weight == pytest.approx(by_occurrence.words[1].weight)  # "and" stands there once


def test_units_count_and_keep_what_they_say(fitted):
    document = trace_document(fitted.model_, "The plum. And the saw. A saw")
    words = document.tokens.words
    assert [len(Parts(document, unit)) for unit in UNITS] == [
        len(set(words)),
        len(words),
        len(document.graphs.source),
        3,
    ]
    word = Parts(document, "word")
    kept = np.arange(len(word)) != word.of_occurrence[words.index("saw")]
    without = trace_document(fitted.model_, "The plum. And the. A")
    assert lead(fitted.model_, word.keep(kept[None])) == pytest.approx(lead(fitted.model_, without.graphs), abs=1e-5)
    weights = PartWeights(np.arange(len(words), dtype=float), np.zeros(0), np.zeros(3))
    saws = [k for k, one in enumerate(words) if one == "saw"]
    assert word.weights(weights)[word.of_occurrence[saws[0]]] == sum(saws)


def test_without_all_edges_there_is_a_graph_without_edges(fitted):
    model, text = fitted.model_, "The plum was in it. He had not a saw"
    parts = Parts(trace_document(model, text), "edge")
    unlinked = build_graphs(
        model.vocabulary.encode([text], model.tokenizer, model.network.by_sentence), GraphConfig(window=1)
    )
    none, every = np.zeros((1, len(parts)), bool), np.ones((2, len(parts)), bool)
    silent = parts.keep(none)
    assert len(silent.source) == 0 and silent.words.tolist() == unlinked.words.tolist()
    assert lead(model, silent) == pytest.approx(lead(model, unlinked), abs=1e-5)
    assert lead(model, parts.keep(every)) == pytest.approx(np.repeat(lead(model, parts.document.graphs), 2), abs=1e-5)


@pytest.mark.parametrize("unit", UNITS)
def test_every_unit_is_measured_alike(fitted, fruit_corpus, unit):
    texts = [". ".join(fruit_corpus[0][k : k + 3]) for k in range(0, 30, 3)]
    result = measure(fitted.model_, texts, ["occlusion", "attention"], [unit])
    assert [one.unit for one in result] == [unit] * 3
    assert all(one.deletion_curve[0] == pytest.approx(one.insertion_curve[-1]) for one in result)
    assert result[0].gain > 0 or unit == "edge"  # of these documents no pair of words tells anything


def test_weights_drawn_at_random_gain_nothing(fitted_flat, fruit_corpus, monkeypatch):
    generator = np.random.default_rng(1)

    def noise(document, column, method, unit):
        return PartWeights(generator.standard_normal(len(document.ids)), np.zeros(0), np.zeros(0))

    monkeypatch.setattr(faithfulness, "weigh", noise)
    (one, random) = measure(fitted_flat.model_, fruit_corpus[0], ["attention"], ["occurrence"])
    assert abs(one.gain) < 1.5 * one.gain_error < 0.1
    assert random.deletion + random.insertion == pytest.approx(one.deletion + one.insertion, abs=0.1)


def test_the_worst_order_loses(fitted_flat, fruit_corpus, monkeypatch):
    right = faithfulness.weigh

    def upside_down(document, column, method, unit):
        parts = right(document, column, "occlusion", unit)
        return type(parts)(-parts.words, parts.edges, parts.sentences)

    monkeypatch.setattr(faithfulness, "weigh", upside_down)
    (worst, _) = measure(fitted_flat.model_, fruit_corpus[0][:20], ["occlusion"])
    assert worst.gain + worst.gain_error < 0


def test_half_of_an_interval():
    assert mean_and_error(np.array([1.0, 2.0, 3.0])) == pytest.approx((2.0, 1.96 / 3**0.5))


def test_nothing_to_measure(fitted_flat):
    with pytest.raises(InputError, match="at least two words"):
        measure(fitted_flat.model_, ["", "one", "two words"], ["attention"])
    with pytest.raises(InputError, match="no unit 'letter' here"):
        measure(fitted_flat.model_, ["two words"], ["attention"], ["letter"])
    with pytest.raises(InputError, match=r"no unit 'edge' here \(known: word, occurrence\)"):
        explain(fitted_flat.model_, "two words", unit="edge")
    with pytest.raises(InputError, match="no method 'luck'"):
        measure(fitted_flat.model_, ["two words"], ["luck"])
