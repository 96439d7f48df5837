import pytest

from mpad.errors import InputError
from mpad.paper import zoo


def test_hn_att_shows_where_it_looked_at_both_levels(fruit_corpus):
    options = {"hidden": 4, "vector_size": 8, "max_epochs": 2, "device": "cpu", "random_state": 0}
    model = zoo.make("hn-att", **options).fit(*fruit_corpus)
    text = "The apple was there. Was it?  A pear!"
    found = model.explain("An apple. " + "The saw, the pear " * 40)  # the network reads its second sentence as four
    assert len(found.sentences) == 2 and sum(word.weight for word in found.words) == pytest.approx(1)
    assert sum(word.weight for word in found.words if word.sentence == 1) == pytest.approx(found.sentences[1].weight)
    found = model.explain(text)
    assert [text[word.start : word.end].lower() for word in found.words] == [w.word.lstrip("\\") for w in found.words]
    assert sum(word.weight for word in found.words) == pytest.approx(1) and found.edges == ()
    assert len(found.sentences) == 3 and sum(sentence.weight for sentence in found.sentences) == pytest.approx(1)
    for number, sentence in enumerate(found.sentences):
        own = [word.weight for word in found.words if word.sentence == number]
        assert sum(own) == pytest.approx(sentence.weight)
    assert found.label == model.predict([text])[0] and model.explain(text, label="tool").label == "tool"
    assert model.explain("").words == () and "pear" in found.to_html()
    with pytest.raises(InputError, match="by attention only"):
        model.explain(text, method="occlusion")
