import numpy as np
import pytest

from mpad.errors import InputError
from mpad.paper import zoo
from mpad.paper.baselines.wmd import distances, movers_distance, relaxed

ot = pytest.importorskip("ot")


def test_a_transport_problem_worked_out_by_hand():
    """Words at 0 and 1 with 3/4 and 1/4; at 0 and 2 with 1/2 each: 1/2 stays, 1/4 goes 0 → 2, 1/4 goes 1 → 2."""
    cost = distances(np.array([[0.0], [1.0]]), np.array([[0.0], [2.0]]))
    assert cost.tolist() == [[0, 2], [1, 1]]
    a, b = np.array([0.75, 0.25]), np.array([0.5, 0.5])
    assert movers_distance(cost, a, b) == pytest.approx(0.25 * 2 + 0.25 * 1)
    assert relaxed(cost, a, b) == pytest.approx(max(0.25 * 1, 0.5 * 1))  # of each side's words to the nearest
    assert movers_distance(np.zeros((0, 2)), np.zeros(0), b) == float("inf")


@pytest.fixture
def vectors(tmp_path):
    words = np.array([f"w{k}" for k in range(30)])
    np.savez(tmp_path / "v.npz", words=words, vectors=np.random.default_rng(0).standard_normal((30, 4)))
    return str(tmp_path / "v.npz")


def some_texts(n, seed):
    generator = np.random.default_rng(seed)
    return [" ".join(f"w{k}" for k in generator.integers(0, 30, generator.integers(1, 9))) for _ in range(n)]


def test_pruning_finds_what_trying_everything_finds(vectors):
    texts = some_texts(60, 0)
    model = zoo.make("wmd", vectors=vectors, neighbours=5, tried=1000).fit(texts, [k % 2 for k in range(60)])
    for text in some_texts(10, 1):
        cloud = model._cloud(text)
        every = [movers_distance(distances(cloud.points, o.points), cloud.mass, o.mass) for o in model.clouds_]
        found = model._nearest(cloud, np.arange(60), 5)
        assert np.allclose(np.array(every)[found], np.sort(every)[:5])


def test_neighbours_are_chosen_on_held_out_documents(vectors):
    texts = some_texts(40, 2)
    labels = ["a" if "w1" in text.split() or "w2" in text.split() else "b" for text in texts]
    assert 1 <= zoo.make("wmd", vectors=vectors).fit(texts, labels).neighbours_ <= 19
    with pytest.raises(InputError, match="'wmd' needs word vectors"):
        zoo.make("wmd").fit(texts, labels)
