"""The linear part of a model against scikit-learn's TF-IDF and LinearSVC, and its shares against its sums."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.svm import LinearSVC

from mpad.errors import InputError
from mpad.graph.build import GraphConfig, build_graphs
from mpad.graph.packed import PackedGraphs
from mpad.linear.features import Features
from mpad.linear.fit import LinearData, _clearly_better, fit_linear_part, fit_part_weights, fit_stack
from mpad.linear.potentials import Potentials, weigh_parts
from mpad.text.tokenizer import KimTokenizer
from mpad.text.vocabulary import SPARE_ROWS, learn_vocabulary

WORDS = "red green blue apple pear plum saw drill nail the of and not very good bad".split()


def corpus(n=160, classes=3, seed=0):
    generator = np.random.default_rng(seed)
    targets = generator.integers(classes, size=n)
    texts = [
        " ".join([*generator.choice(WORDS, generator.integers(4, 15)), WORDS[target], WORDS[target + 3]])
        for target in targets
    ]
    return texts, targets.astype(np.int64)


def packed(texts, sentences=False, **config):
    vocabulary, encoded = learn_vocabulary(texts, KimTokenizer(), sentences)
    return vocabulary, build_graphs(encoded, GraphConfig(**config))


def vectors_of(vocabulary, width=8, seed=1):
    return np.random.default_rng(seed).standard_normal((vocabulary.n_rows, width)).astype(np.float32)


def fitted(texts, targets, n_classes, width=8, **config):
    vocabulary, graphs = packed(texts, **config)
    stack = fit_stack(graphs, targets, n_classes, len(vocabulary), vectors_of(vocabulary, width))
    return vocabulary, graphs, stack


@pytest.mark.parametrize("classes", [2, 3])
def test_scores_are_those_of_tfidf_and_a_linear_svm(classes):
    texts, targets = corpus(classes=classes)
    vocabulary, graphs, stack = fitted(texts, targets, classes, width=0)
    identity = np.eye(classes, dtype=np.float32)
    bare = Potentials(**{**vars_of(stack), "from_scores": identity, "bias": np.zeros(classes, np.float32)})
    words = TfidfVectorizer(
        tokenizer=KimTokenizer().words, token_pattern=None, lowercase=False, ngram_range=(1, 2), sublinear_tf=True
    ).fit(texts)
    doubled = [name for name in words.get_feature_names_out() if len(set(name.split())) < len(name.split())]
    frequency = np.asarray((words.transform(texts) > 0).sum(axis=0)).ravel()
    names = words.get_feature_names_out()
    kept = [k for k in range(len(names)) if (" " not in names[k] or frequency[k] >= 2) and names[k] not in doubled]
    x = words.transform(texts)[:, kept].toarray()
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    svm = LinearSVC(random_state=0).fit(x, targets)
    expected = svm.decision_function(x)
    expected = np.stack([-expected, expected], axis=1) if classes == 2 else expected
    assert np.allclose(bare.logits(graphs), expected, atol=0.02)  # potentials are kept in half precision


def vars_of(potentials):
    return {name: getattr(potentials, name) for name in potentials.__dataclass_fields__}


@pytest.mark.parametrize("config", [{}, {"window": 4}, {"directed": False}, {"weighting": "distance", "window": 5}])
def test_shares_add_up(config):
    texts, targets = corpus()
    _, graphs, stack = fitted(texts, targets, 3, **config)
    nodes, edges = stack.shares(graphs)
    total = stack.constant + np.zeros((len(graphs), 3), np.float32)
    np.add.at(total, np.repeat(np.arange(len(graphs)), np.diff(graphs.node_start)), nodes)
    np.add.at(total, np.repeat(np.arange(len(graphs)), np.diff(graphs.edge_start)), edges)
    assert np.allclose(total, stack.logits(graphs), atol=1e-4)
    assert (stack.logits(graphs).argmax(1) == targets).mean() > 0.9


def test_sentences_and_empty_documents():
    texts, targets = corpus()
    texts = [text.replace(" the ", ". The ", 1) for text in texts]
    texts[3] = ""
    vocabulary, graphs = packed(texts, sentences=True)
    assert graphs.n_graphs > len(graphs)
    stack = fit_stack(graphs, targets, 3, len(vocabulary), vectors_of(vocabulary))
    logits = stack.logits(graphs)
    assert np.allclose(logits[3], stack.constant) and (logits.argmax(1) == targets).mean() > 0.9


def test_a_document_alone_or_among_others():
    texts, targets = corpus()
    vocabulary, graphs, stack = fitted(texts, targets, 3)
    alone = [build_graphs(vocabulary.encode([text], KimTokenizer())) for text in texts[:20]]
    assert np.allclose(np.concatenate([stack.logits(one) for one in alone]), stack.logits(graphs)[:20], atol=1e-5)


def with_new_word(vocabulary, pieces=(0, 1)):
    """A document of two words and a new one, and the place of that among its nodes."""
    graphs = build_graphs(vocabulary.encode(["red apple xyzzy"], KimTokenizer()))
    graphs = PackedGraphs.built(**{**vars(graphs), "words": np.sort(graphs.words), "new_words": (pieces,)})
    graphs.words[graphs.words >= len(vocabulary)] = len(vocabulary)
    return graphs, int(np.flatnonzero(graphs.words == len(vocabulary))[0])


def test_a_new_word_has_a_vector_and_a_potential_by_its_pieces():
    texts, targets = corpus()
    vocabulary, _, stack = fitted(texts, targets, 3)
    graphs, place = with_new_word(vocabulary)
    shares, _ = stack.shares(graphs)
    weighed = weigh_parts(graphs, stack._keys, stack.idf, stack.idf_new, graphs.new_words)
    mean = (stack.vectors.astype(np.float32) @ stack.from_mean.T)[:2].mean(0)
    potential = (stack.potential.astype(np.float32) @ stack.from_scores.T)[:2].mean(0)
    assert np.allclose(
        shares[place], mean * weighed.node_share[place] + potential * weighed.node_value[place], rtol=1e-3
    )
    assert weighed.node_value[place] > 0 and len(stack.vectors) == len(vocabulary) + SPARE_ROWS


def test_a_new_word_has_a_vector_alone_where_words_of_the_vocabulary_have_no_potential():
    texts, targets = corpus()
    vocabulary, graphs = packed(texts)
    stack = fit_stack(graphs, targets, 3, len(vocabulary) - 1, vectors_of(vocabulary))
    for pieces in ((0, 1), ()):
        graphs, place = with_new_word(vocabulary, pieces)
        shares, _ = stack.shares(graphs)
        means = (stack.vectors.astype(np.float32) @ stack.from_mean.T)[:2].mean(0)
        weighed = shares[place] / means
        assert np.allclose(weighed, weighed[0], rtol=1e-3)  # a share of its pieces' mean, the same for all classes


def test_letters_are_added_to_words_that_have_them():
    """Weights of n-grams of letters, folded into words: the same scores as of a matrix that has them as columns."""
    texts, targets = corpus()
    texts = [text.replace("pear", "greenery") for text in texts]
    vocabulary, graphs = packed(texts)
    words = [*vocabulary.words, "apples", "##ples", "greens"]
    features = Features(graphs, np.arange(len(texts)), len(words), vectors_of(vocabulary), words)
    known = features.known
    spelt = {word: set(known.ngrams[k].indices) for k, word in enumerate(words)}
    assert spelt["green"] & spelt["greenery"] & spelt["greens"] and not spelt["the"]
    svm = LinearSVC(random_state=0).fit(features.x, targets)
    own = known.merge_ngrams(svm.coef_)
    assert own.shape == (3, len(known.idf)) and features.x.shape[1] == len(known.idf) + known.ngrams.shape[1]
    assert np.allclose(features.x[:, : own.shape[1]] @ own.T + svm.intercept_, svm.decision_function(features.x))
    assert (known.idf > 0).all() and np.isclose(known.idf[words.index("apples")], known.idf_new)


def test_a_word_that_no_training_document_has_takes_after_those_that_share_its_letters():
    texts = [f"{word} {other}" for word in ("wonderful", "wonderfully") for other in ("a", "b", "c")]
    texts += [f"{word} {other}" for word in ("dreadful", "dreadfully") for other in ("a", "b", "c")]
    targets = np.array([0] * 6 + [1] * 6)
    vocabulary, graphs = packed(texts)
    words = [*vocabulary.words, "wonder", "dread", "zzz"]
    vectors = np.zeros((len(words) + SPARE_ROWS, 0), np.float32)
    features = Features(graphs, np.arange(12), len(words), vectors, words)
    svm = LinearSVC(random_state=0).fit(features.x, targets)
    wonder, dread, nothing = features.known.merge_ngrams(svm.coef_)[0, len(vocabulary) : len(words)]
    assert wonder < 0 < dread and nothing == 0


def test_no_letters_in_common():
    vocabulary, graphs = packed(["a b", "c d", "a d", "c b"])
    features = Features(graphs, np.arange(4), len(vocabulary), vectors_of(vocabulary), vocabulary.words)
    assert features.known.ngrams is None and features.x.shape[1] == len(features.known.idf)


def test_numbers_beyond_all_bounds_are_left_to_whoever_answers():
    texts, targets = corpus()
    _, graphs, stack = fitted(texts, targets, 3)
    huge = np.full(3, 3e38, np.float32)
    stack = replace(stack, intercept=huge, from_scores=np.eye(3, dtype=np.float32) * 9, network=np.float32(9))
    assert not np.isfinite(stack.logits(graphs)).any()  # and no warning, which would be an error here
    assert not np.isfinite(stack.add_network(np.stack([huge] * len(graphs)), np.zeros(3, np.float32))).any()
    assert all(len(part) for part in stack.shares(graphs))


def test_damaged_pairs_are_refused():
    texts, targets = corpus()
    _, _, stack = fitted(texts, targets, 3)
    for change in (lambda pairs: pairs[::-1], lambda pairs: pairs + 1000, lambda pairs: pairs - 1):
        tensors = {**stack.tensors(), "potentials.pairs": change(stack.pairs)}
        with pytest.raises(InputError, match="pair"):
            Potentials.from_tensors(tensors, stack.vectors)


def part_of(texts, targets, n_classes, network, weights=None):
    vocabulary, graphs = packed(texts)
    seen, held = np.split(np.arange(len(texts)), [-40])
    weights = np.ones(len(texts), np.float32) if weights is None else weights
    vectors = vectors_of(vocabulary)
    words = vocabulary.words
    data = LinearData(graphs, targets, weights, n_classes, len(words), vectors, words)
    return fit_linear_part(data, seen, held, network[held], seed=0), graphs


def test_a_good_network_counts_more_than_a_bad_one():
    texts, targets = corpus()
    generator = np.random.default_rng(0)
    right = 4.0 * np.eye(3)[targets] + generator.standard_normal((len(texts), 3))
    wrong = 4.0 * generator.standard_normal((len(texts), 3))
    good, bad = (part_of(texts, targets, 3, network)[0] for network in (right, wrong))
    assert good.potentials.network > 1.5 * bad.potentials.network > 0
    assert set(good.accuracies) == {"ngram-svm", "ngram-stack", "mpad"} and good.accuracies["mpad"] > 0.9


def test_what_is_clearly_better_answers_alone(monkeypatch):
    texts, targets = corpus()
    misleading = -8.0 * np.eye(3)[targets]
    monkeypatch.setattr(
        "mpad.linear.fit.fit_part_weights", lambda experts, targets, usual, importance: np.ones(len(usual))
    )
    part, graphs = part_of(texts, targets, 3, misleading)
    assert part.answers_by in ("ngram-svm", "ngram-stack") and part.potentials.network == 0
    assert part.accuracies["mpad"] == part.accuracies[part.answers_by]
    assert (part.potentials.add_network(misleading, part.potentials.logits(graphs)).argmax(1) == targets).mean() > 0.9


def test_many_labels_a_document_and_a_label_that_never_stands():
    texts, targets = corpus()
    indicators = np.stack([targets == 0, targets != 1, np.zeros(len(targets))], axis=1).astype(np.float32)
    part, graphs = part_of(texts, indicators, 3, np.zeros((len(texts), 3)))
    logits = part.potentials.logits(graphs)
    assert ((logits > 0) == (indicators > 0.5)).mean() > 0.9 and not (logits[:, 2] > 0).any()


def test_few_documents_and_classes_of_one():
    texts = ["red apple", "green saw", "blue saw", "red pear", "nail"]
    targets = np.array([0, 1, 1, 0, 2])
    _, graphs, stack = fitted(texts, targets, 3)
    assert np.isfinite(stack.logits(graphs)).all()


def test_without_held_out_documents_the_prior_counts():
    assert np.allclose(
        fit_part_weights([np.zeros((0, 3))] * 3, np.zeros(0, np.int64), np.log([1.0, 2.0, 3.0])), [1, 2, 3]
    )
    assert _clearly_better(np.ones(9), np.zeros(9)) and not _clearly_better(np.ones(9), np.ones(9))


def test_a_pickled_one_leaves_its_tables_behind():
    texts, targets = corpus()
    _, graphs, stack = fitted(texts, targets, 3)
    expected, fresh = stack.logits(graphs), pickle.loads(pickle.dumps(stack))
    assert set(vars(fresh)) == set(stack.__dataclass_fields__) < set(vars(stack))
    assert np.array_equal(fresh.logits(graphs), expected)
