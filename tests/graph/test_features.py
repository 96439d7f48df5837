"""Features of nodes, by hand and through batches."""

import numpy as np
import pytest
import torch

from mpad.config import MPADConfig
from mpad.graph.batch import CorpusTensors
from mpad.graph.build import GraphConfig, build_graphs
from mpad.graph.features import node_means, nodes_of_words, with_features
from mpad.graph.packed import PackedGraphs, take_documents
from mpad.kernels import accelerate
from mpad.kernels.static_batch import BatchShape, StaticCorpus
from mpad.model import MPAD
from mpad.text.tokenizer import KimTokenizer
from mpad.text.vocabulary import learn_vocabulary

TEXTS = ["the cat saw the dog. The dog saw!", "", "dog", "a cat a dog a"]


class Counting:
    """Says of the k-th word of a text: k, and where it begins."""

    width = 2

    def word_states(self, texts, spans, device):
        rows = [[k, begin] for own in spans for k, (begin, _) in enumerate(own)]
        return np.array(rows, np.float16).reshape(-1, 2)


def built(sentences=False):
    tokenizer = KimTokenizer()
    vocabulary, corpus = learn_vocabulary(TEXTS, tokenizer, sentences)
    graphs = build_graphs(corpus, GraphConfig())
    return vocabulary, corpus, with_features(graphs, corpus, TEXTS, tokenizer, sentences, Counting())


def named(vocabulary, graphs, number):
    nodes = slice(*graphs.node_start[number : number + 2])
    return {
        vocabulary.words[word]: row.tolist()
        for word, row in zip(graphs.words[nodes], graphs.features[nodes], strict=True)
    }


def test_a_node_has_the_mean_of_its_word():
    vocabulary, _, graphs = built()
    first = named(vocabulary, graphs, 0)  # the cat saw the dog the dog saw !
    assert first["the"][0] == pytest.approx((0 + 3 + 5) / 3, abs=2e-3) and first["dog"][0] == 5
    assert first["cat"] == [1, 4] and first["saw"][0] == 4.5 and first["!"][0] == 8
    assert not named(vocabulary, graphs, 1) and named(vocabulary, graphs, 3)["a"] == [2, (0 + 6 + 12) / 3]


def test_in_variants_of_sentences_a_node_is_of_its_sentence():
    vocabulary, _, graphs = built(sentences=True)
    assert named(vocabulary, graphs, 0)["dog"][0] == 4 and named(vocabulary, graphs, 1)["dog"][0] == 6


def test_large_corpora_are_read_in_parts(monkeypatch):
    whole = built()[2]
    monkeypatch.setattr("mpad.graph.features._CHUNK", 3)
    monkeypatch.setattr("mpad.graph.features._IN_MEMORY", 0)  # and kept in a file
    part = built()[2]
    assert isinstance(part.features, np.memmap) and np.array_equal(part.features, whole.features)


def test_nodes_of_words_left_out():
    """Word k of what is left may have the state of another place."""
    _, corpus, graphs = built()
    node_of = nodes_of_words(graphs, corpus)
    assert np.array_equal(graphs.words[node_of], corpus.ids)
    means = node_means(np.array([0, 1, 0]), np.array([[1.0], [2.0], [4.0]]), 3, np.array([2, 0, 1]))
    assert means.tolist() == [[3], [1], [0]]


def test_documents_taken_out_keep_their_features():
    _, _, graphs = built()
    taken = take_documents(graphs, np.array([3, 0]))
    assert np.array_equal(
        taken.features[: len(graphs.features[graphs.node_start[3] :])], graphs.features[graphs.node_start[3] :]
    )
    with pytest.raises(ValueError, match="features"):
        PackedGraphs(**{**vars(graphs), "features": graphs.features[1:]})


@pytest.mark.parametrize("fast", [True, False])
def test_a_network_reads_features_in_every_kind_of_batch(fast):
    _, _, graphs = built()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = MPAD(MPADConfig(n_classes=3, vector_width=2, n_words=0, hidden=16)).eval()
    accelerate(network, fast)
    corpus = CorpusTensors(graphs)
    documents = torch.tensor([3, 0, 2])
    whole = network(corpus.take(documents)).logits
    table = torch.from_numpy(graphs.features.astype(np.float32))
    with torch.no_grad():
        assert torch.allclose(network(corpus.take(documents), None, table).logits, whole, atol=1e-5)
        alone = torch.cat([network(corpus.take(documents[k : k + 1])).logits for k in range(3)])
        assert torch.allclose(alone, whole, atol=1e-5)
        corpus.rows = corpus.rows.half()
        assert torch.allclose(network(corpus.take(documents)).logits, whole, atol=1e-5)
    other = built()[2]
    other.features[:] += 1
    assert not torch.allclose(network(CorpusTensors(other).take(documents)).logits, whole, atol=1e-3)
    static = StaticCorpus(corpus)
    shape = BatchShape(nodes=64, graphs=5, documents=4)
    step = static.cut(documents[None, None], shape)[0]
    assert static.batch(step, 1, shape).rows is corpus.rows
