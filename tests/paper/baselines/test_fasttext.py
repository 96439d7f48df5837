import pytest

from mpad.paper import zoo

pytest.importorskip("fasttext")


@pytest.mark.filterwarnings("ignore")
def test_documents_that_stand_class_by_class_are_learnt_all_the_same(fruit_corpus):
    """fastText learns in the order of its file: unshuffled, it would remember the last class alone."""
    rows = sorted(zip(*fruit_corpus, strict=True), key=lambda row: row[1])
    texts, labels = zip(*rows, strict=True)
    model = zoo.make("fasttext", learning_rate=0.5, epochs=25).fit(texts, labels)
    assert model.score(texts, labels) > 0.95 and model.chosen_ == {"learning_rate": 0.5, "epochs": 25}
