import pytest

from mpad.errors import InputError
from mpad.paper import zoo
from mpad.paper.experiments import paper
from mpad.paper.experiments.protocol import (
    BASELINE,
    MODELS,
    PLAIN,
    make_cell,
    make_estimator,
    reads_trees,
    table_models,
)


def test_folds_and_seeds_by_the_dataset():
    assert len(make_cell("polarity", "mpad").runs) == 10
    assert make_cell("imdb", "mpad").runs == [(0, seed) for seed in range(5)]
    assert make_cell("polarity", "mpad", n_folds=3, n_seeds=2).runs == [(f, s) for s in range(2) for f in range(3)]
    assert make_cell("trec", "mpad-path", n_folds=2).runs == [(0, 0), (0, 1)]
    assert make_cell("trec", BASELINE).runs == [(0, 0)]


def test_what_cannot_be_run_is_told():
    with pytest.raises(InputError, match="no dataset 'docstrings' in the paper"):
        make_cell("docstrings", "mpad")
    with pytest.raises(InputError, match="no model 'cliq' to run"):
        make_cell("trec", "cliq")
    with pytest.raises(InputError, match="only sst1 and sst2 have"):
        make_cell("trec", "tree-lstm")
    with pytest.raises(InputError, match="folds must be from 1 to 10, not 11"):
        make_cell("polarity", "mpad", n_folds=11)
    with pytest.raises(InputError, match="--vectors or MPAD_VECTORS"):
        make_estimator(make_cell("trec", "mpad"), None)


def test_every_row_of_the_tables_is_an_estimator():
    for table in ("table2", "table3"):
        for model in table_models(table):
            if model not in PLAIN:
                dataset = "sst1" if reads_trees(model) else "imdb"
                estimator = make_estimator(make_cell(dataset, model), "vectors.bin")
                assert getattr(estimator, "hidden", 128) == ("auto" if "best" in model else 128)
    assert len(table_models("table3")) == 10 and set(paper.TABLE_3) < set(MODELS)
    default = {"mpad-best", "mpad-best-5", "mpad-best-network"}
    assert set(table_models("table2")) == {*zoo.NAMES, *default}


def test_rows_of_the_default_read_both_kinds_of_vectors():
    estimator = make_estimator(make_cell("sst1", "mpad-best-5", preset="authors"), "v.bin")
    assert estimator.vectors == ["auto", "v.bin"] and estimator.members == 5 and estimator.preset == "best"
    assert estimator.max_epochs == "auto" and make_cell("sst1", "mpad-best").setting["preset"] == "best"


def test_ablations_change_one_thing():
    plain = make_estimator(make_cell("reuters", "mpad"), "v.bin").get_params()
    for model in paper.TABLE_3:
        other = make_estimator(make_cell("reuters", model), "v.bin").get_params()
        assert sum(plain[name] != other[name] for name in plain) == (model != "mpad")


def test_yelp_learns_its_own_vectors():
    estimator = make_estimator(make_cell("yelp2013", "mpad"), None)
    assert estimator.vectors == "corpus" and estimator.hidden == 128


def test_the_paper_is_typed_as_printed():
    assert paper.printed("mpad-clique", "bbcsport") == 99.72 and paper.printed("wmd", "imdb") == "OOM"
    assert paper.printed("c-lstm", "trec") == 94.6 and paper.printed("c-lstm", "reuters") is None
    assert paper.printed("mpad-4mp", "reuters") == 97.48 and paper.printed("mpad", "snippets") is None
    assert all(len(row) == len(paper.TABLE_2_DATASETS) for row in paper.TABLE_2.values())
    assert all(len(row) == len(paper.TABLE_3_DATASETS) for row in paper.TABLE_3.values())
    assert [paper.printed("mpad", name) for name in paper.TABLE_3_DATASETS] == list(paper.TABLE_3["mpad"])
