from mpad.config import VARIANTS
from mpad.explain import METHODS
from mpad.paper import zoo
from mpad.paper.networks.baselines import BASELINES
from mpad.registry import REGISTRY, find_kind
from mpad.sequence.trees import TREE_WORDS


def test_the_table_is_true():
    """It is written without torch, and so without looking at the classes that it describes."""
    variants = [entry.parameters["variant"] for entry in REGISTRY.values() if entry.kind == "mpad"]
    assert variants == list(VARIANTS)
    networks = [name for name, entry in REGISTRY.items() if entry.is_network and entry.kind != "mpad"]
    assert set(networks) == set(BASELINES)
    for name in networks:
        network, entry = BASELINES[name][0], REGISTRY[name]
        reads = "trees" if network.reads_trees else "words" if network.graph is None else "graphs"
        assert entry.reads == reads and (reads != "trees" or entry.parameters == {"tokenizer": TREE_WORDS})
    for name, entry in REGISTRY.items():
        estimator = entry.estimator_class()
        assert hasattr(estimator, "predict_proba") == entry.probabilities, name
        assert set(entry.explained_by) <= set(METHODS)
        found = find_kind(entry.kind)
        assert found is not None and found.estimator == entry.estimator
        assert type(zoo.make(name)) is estimator
    assert find_kind("nothing") is None


def test_it_is_read_without_torch():
    import subprocess
    import sys

    code = "import sys; import mpad.registry; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
