import numpy as np
import pytest

from mpad.errors import InputError, MissingExtra
from mpad.graph import export, from_networkx, graphs_of_words, to_networkx, to_pyg, to_scipy

TEXTS = ["the cat saw the dog", "a b"]
FLOW = {("the", "cat"): 1.0, ("cat", "saw"): 1.0, ("saw", "the"): 1.0, ("the", "dog"): 1.0}


@pytest.fixture
def packed():
    return graphs_of_words(TEXTS)


def test_networkx_edges_follow_the_text(packed):
    pytest.importorskip("networkx")
    graphs, vocabulary = packed
    graph = to_networkx(graphs, 0, vocabulary)
    assert {(u, v): w for u, v, w in graph.edges(data="weight")} == FLOW
    by_id = to_networkx(graphs, 0)
    assert by_id.has_edge(vocabulary.id("the"), vocabulary.id("cat"))


def test_networkx_with_master(packed):
    pytest.importorskip("networkx")
    graph = to_networkx(*packed[:1], 1, packed[1], master=True)
    assert set(graph.nodes) == {"a", "b", "<master>"}
    assert graph.has_edge("<master>", "a") and graph.has_edge("a", "<master>")


def test_scipy_is_the_transpose_of_the_papers_matrix(packed):
    graphs, vocabulary = packed
    outgoing, incoming = to_scipy(graphs, 0).toarray(), to_scipy(graphs, 0, incoming=True).toarray()
    assert np.array_equal(outgoing, incoming.T)
    names = [vocabulary.words[word] for word in graphs.words[:4]]
    assert outgoing[names.index("the"), names.index("cat")] == 1
    assert outgoing[names.index("cat"), names.index("the")] == 0
    assert np.diag(outgoing).sum() == 0
    with_master = to_scipy(graphs, 0, master=True).toarray()
    assert with_master[-1, :-1].tolist() == with_master[:-1, -1].tolist() == [1.0] * 4 and with_master[-1, -1] == 0


@pytest.mark.filterwarnings("ignore")
def test_pyg_sends_from_source_to_target(packed):
    pytest.importorskip("torch_geometric")
    graphs, vocabulary = packed
    data = to_pyg(graphs, 0)
    words = [vocabulary.words[word] for word in data.x[:, 0].tolist()]
    pairs = {(words[u], words[v]) for u, v in data.edge_index.t().tolist()}
    assert pairs == set(FLOW) and data.edge_weight.tolist() == [1.0] * 4


def test_there_and_back(packed):
    pytest.importorskip("networkx")
    graphs, vocabulary = packed
    again = from_networkx([to_networkx(graphs, k, vocabulary) for k in range(2)], vocabulary)
    for name, array in vars(graphs).items():
        assert name == "count" or np.array_equal(array, getattr(again, name)), name  # networkx's nodes have no count


def test_peoples_own_graphs():
    networkx = pytest.importorskip("networkx")
    graph = networkx.Graph([(3, 1, {"weight": 2.5}), (1, 1)])
    packed = from_networkx([graph, networkx.DiGraph()])
    assert packed.words.tolist() == [1, 3] and packed.weight.tolist() == [2.5, 2.5]
    assert packed.target.tolist() == [0, 1] and packed.source.tolist() == [1, 0]
    assert len(packed) == 2
    with pytest.raises(InputError, match="not a word id"):
        from_networkx([networkx.path_graph(["a", "b"])])
    with pytest.raises(InputError, match="same word id"):
        from_networkx([networkx.Graph([("a", "b")])], {"a": 0, "b": 0})


def test_unknown_words_and_places(packed):
    pytest.importorskip("networkx")
    graphs, vocabulary = packed
    from mpad.graph import build_graphs
    from mpad.text.tokenizer import as_tokenizer

    unseen = build_graphs(vocabulary.encode(["zebra"], as_tokenizer("kim")))
    assert next(iter(to_networkx(unseen, 0, vocabulary))).startswith("<unknown ")
    with pytest.raises(InputError, match="no graph 2"):
        to_scipy(graphs, 2)


def test_a_missing_extra_says_how_to_get_it(packed, monkeypatch):
    def missing(module, extra):
        raise MissingExtra(f"'{module}' is needed here: pip install 'mpad[{extra}]'")

    monkeypatch.setattr(export, "require", missing)
    with pytest.raises(MissingExtra, match=r"pip install 'mpad\[graph\]'"):
        to_networkx(packed[0], 0)
