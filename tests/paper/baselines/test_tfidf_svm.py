from mpad.paper.baselines.tfidf_svm import tfidf_svm, tfidf_svm_config


def test_it_learns_and_says_what_it_is(fruit_corpus):
    texts, labels = fruit_corpus
    assert tfidf_svm().fit(texts[:90], labels[:90]).score(texts[90:], labels[90:]) > 0.8
    assert tfidf_svm_config()["ngram_range"] == [1, 2]
