from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpad.errors import InputError
from mpad.graph import GraphConfig, build_graphs, graphs_of_words
from mpad.graph import build as build_module
from mpad.text.tokenizer import as_tokenizer


def edges(texts, index=0, **options):
    graphs, vocabulary = graphs_of_words(texts, **options)
    nodes = slice(*graphs.node_start[index : index + 2])
    names = [vocabulary.words[word] for word in graphs.words[nodes]]
    here = slice(*graphs.edge_start[index : index + 2])
    assert (np.diff(graphs.target[here]) >= 0).all(), "edges are sorted by target"
    listed = zip(graphs.source[here], graphs.target[here], graphs.weight[here].tolist(), strict=True)
    return {(names[u], names[v]): w for u, v, w in listed}, set(names)


def test_hand_worked_sentence():
    found, nodes = edges(["the cat saw the cat and the dog"])
    assert nodes == {"the", "cat", "saw", "and", "dog"}
    assert found == {
        ("the", "cat"): 2.0,
        ("cat", "saw"): 1.0,
        ("saw", "the"): 1.0,
        ("cat", "and"): 1.0,
        ("and", "the"): 1.0,
        ("the", "dog"): 1.0,
    }


def test_repeated_words_make_no_loop():
    assert edges(["very very good"])[0] == {("very", "good"): 1.0}
    assert edges(["no no no"]) == ({}, {"no"})


def test_the_window_spans_sentences_in_a_document_but_not_across_documents():
    assert edges(["a b. c", "d e"])[0] == {("a", "b"): 1.0, ("b", "c"): 1.0}
    assert edges(["a b. c", "d e"], index=1)[0] == {("d", "e"): 1.0}


def test_sentences_as_graphs():
    graphs, _ = graphs_of_words(["a b. c", "", "d e"], per="sentence")
    assert np.diff(graphs.node_start).tolist() == [2, 1, 0, 2]
    assert graphs.document_start.tolist() == [0, 2, 3, 4]
    assert graphs.document_sizes().tolist() == [3, 0, 2]


def test_undirected():
    assert edges(["a b a"], directed=False)[0] == {("a", "b"): 2.0, ("b", "a"): 2.0}


def test_larger_windows_by_count_and_by_distance():
    assert edges(["a b c"], window=3)[0] == {("a", "b"): 1.0, ("b", "c"): 1.0, ("a", "c"): 1.0}
    assert edges(["a b c"], window=3, weighting="distance")[0] == {("a", "b"): 1.0, ("b", "c"): 1.0, ("a", "c"): 0.5}
    assert edges(["a b"], window=1)[0] == {}
    assert edges(["a b"], window=99)[0] == {("a", "b"): 1.0}


def one_by_one(words, window, directed, weighting):
    counter = Counter()
    for i, u in enumerate(words):
        for distance in range(1, window):
            if i + distance < len(words) and words[i + distance] != u:
                share = 1.0 if weighting == "count" else 1.0 / distance
                counter[u, words[i + distance]] += share
                if not directed:
                    counter[words[i + distance], u] += share
    return counter


@given(
    st.lists(st.text(alphabet="abcd ", max_size=25), min_size=1, max_size=6),
    st.integers(1, 5),
    st.booleans(),
    st.sampled_from(["count", "distance"]),
)
def test_the_whole_corpus_at_once_is_each_document_alone(texts, window, directed, weighting):
    for index, text in enumerate(texts):
        found, nodes = edges(texts, index, window=window, directed=directed, weighting=weighting)
        words = as_tokenizer("kim").words(text)
        expected = one_by_one(words, window, directed, weighting)
        assert nodes == set(words)
        assert found.keys() == expected.keys()
        assert all(abs(found[pair] - expected[pair]) < 1e-5 for pair in expected)


def test_chunks_do_not_show(monkeypatch):
    texts = ["a b c a", "", "b c d. e f", "x"] * 7
    whole, _ = graphs_of_words(texts, per="sentence")
    monkeypatch.setattr(build_module, "_CHUNK", 3)
    pieces, _ = graphs_of_words(texts, per="sentence")
    for name, array in vars(whole).items():
        assert np.array_equal(array, getattr(pieces, name)), name


def test_no_documents():
    graphs, _ = graphs_of_words([])
    assert len(graphs) == 0 and graphs.n_graphs == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [({"window": 0}, "at least 1"), ({"weighting": "x"}, "'count' or"), ({"per": "page"}, "'document' or")],
)
def test_bad_options(options, said):
    with pytest.raises(InputError, match=said):
        graphs_of_words(["a"], **options)


def test_build_takes_defaults():
    from mpad.text.vocabulary import learn_vocabulary

    _, corpus = learn_vocabulary(["a b"], as_tokenizer("kim"))
    assert build_graphs(corpus).weight.tolist() == build_graphs(corpus, GraphConfig()).weight.tolist() == [1.0]
