import json

import pytest

from mpad.errors import InputError
from mpad.explain import METHODS

TEXT = "The apple was in it. He had not a saw"


def log_odds_of_fruit(logits):
    """Of two classes, the lead of one over the other; never through probabilities, which round to 1."""
    return logits[:, 0] - logits[:, 1]


def test_parts_and_offsets(fitted):
    explanation = fitted.explain(TEXT)
    assert [TEXT[w.start : w.end].lower() for w in explanation.words] == [w.word for w in explanation.words]
    assert [TEXT[s.start : s.end] for s in explanation.sentences] == ["The apple was in it", "He had not a saw"]
    for edge in explanation.edges:
        for (a, b), (c, d) in edge.spans:
            assert (TEXT[a:b].lower(), TEXT[c:d].lower()) == (edge.source, edge.target)
        assert edge.count == len(edge.spans)
    crossing = ("it", "he") in {(edge.source, edge.target) for edge in explanation.edges}
    assert crossing == (fitted.variant == "mpad")  # only one graph a document links sentences


def test_occlusion_can_be_checked_by_hand(fitted):
    explanation = fitted.explain(TEXT, label="fruit", method="occlusion")
    assert explanation.probability == pytest.approx(fitted.predict_proba([TEXT])[0, 0])
    for part in (*explanation.words, *explanation.sentences):
        without = TEXT[: part.start] + " " + TEXT[part.end :]
        lead = -fitted.decision_function([TEXT, without])  # of "fruit" over "tool"
        assert part.weight == pytest.approx(lead[0] - lead[1], abs=1e-3)


def test_removing_an_edge_removes_that_edge_alone(fitted):
    """With one edge in all, the graph without it is the graph of the same words unlinked."""
    explanation = fitted.explain("apple saw", label="fruit", method="occlusion")
    (edge,) = explanation.edges
    model = fitted.model_
    from mpad.graph import GraphConfig, build_graphs

    unlinked = build_graphs(model.vocabulary.encode(["apple saw"], model.tokenizer), GraphConfig(window=1))
    lead = -fitted.decision_function(["apple saw"]) - log_odds_of_fruit(model.answer(unlinked).logits)
    assert edge.weight == pytest.approx(lead[0], abs=1e-3)


def test_attention_shares_sum_to_one(fitted):
    explanation = fitted.explain(TEXT, method="attention")
    assert sum(word.weight for word in explanation.words) == pytest.approx(1, abs=1e-5)
    assert sum(sentence.weight for sentence in explanation.sentences) == pytest.approx(1, abs=1e-5)
    assert all(edge.weight >= 0 for edge in explanation.edges)
    repeated = fitted.explain("apple apple", method="attention")
    assert repeated.words[0].weight == repeated.words[1].weight


def test_the_telling_word_tells(fitted_flat):
    explanation = fitted_flat.explain("it was the plum that he had")
    assert explanation.label == "fruit" and explanation.top_words(1)[0].word == "plum"
    assert explanation.top_words(1)[0].weight > 0
    against = fitted_flat.explain("it was the plum that he had", label="tool")
    assert against.top_words(1)[0].weight < 0


def test_long_documents_say_what_was_left_out(fitted_flat, monkeypatch):
    from mpad.explain import occlusion

    monkeypatch.setattr(occlusion, "_BUDGET", 100)
    explanation = fitted_flat.explain("apple " + " ".join(f"w{k}" for k in range(200)), method="occlusion")
    assert "10 words, pairs and sentences with most attention" in explanation.note
    assert sum(word.weight != 0 for word in explanation.words) <= 10
    assert fitted_flat.explain("apple", method="occlusion").note == ""


def test_unknown_words_that_share_a_node_keep_their_names(fitted_flat):
    text = " ".join(f"blorb{k}" for k in range(300))
    explanation = fitted_flat.explain(text, method="attention")
    for edge in explanation.edges:
        (a, b), (c, d) = edge.spans[0]
        assert (text[a:b], text[c:d]) == (edge.source, edge.target)
    assert "unknown words share a row" in explanation.note and not fitted_flat.explain("the apple").note
    assert "reads no word" in fitted_flat.explain("").note


def test_brackets_are_shown_as_people_write_them(fitted_flat):
    explanation = fitted_flat.explain("(an apple)?")
    assert "\\" not in explanation.to_html() and "( →" in explanation.to_html()


def test_an_empty_document(fitted):
    for method in METHODS:
        explanation = fitted.explain("", method=method)
        assert explanation.words == explanation.edges == explanation.sentences == ()
        assert sum(explanation.probabilities.values()) == pytest.approx(1)


def test_to_dict_is_json(fitted):
    record = json.loads(json.dumps(fitted.explain(TEXT).to_dict()))
    assert record["label"] in ("fruit", "tool") and len(record["words"]) == 10


@pytest.mark.parametrize(
    ("arguments", "said"), [(("a", "z"), "no class 'z'"), (("a", None, "m"), "no method 'm'"), ((["a"],), "one text")]
)
def test_errors(fitted_flat, arguments, said):
    with pytest.raises(InputError, match=said):
        fitted_flat.explain(*arguments)
