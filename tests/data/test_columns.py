"""Columns of other libraries are what lists are: the same model comes out."""

import numpy as np
import pytest

from mpad import MPADClassifier
from mpad.data.inputs import as_examples, as_labels, as_list, as_texts, column_names
from mpad.errors import InputError
from mpad.paper import zoo

TEXTS, ONE = ["a plum", "the saw", "a pear"], ["fruit", "tool", "fruit"]
MANY = [["fruit", "ripe"], [], ["fruit"]]


def pandas_columns(values):
    pandas = pytest.importorskip("pandas")
    yield pandas.Series(values, index=[7, 3, 1])
    if not isinstance(values[0], list):
        yield pandas.Series(values).astype("category")
        yield pandas.Series(values).astype("string")
    yield pandas.Series([np.array(value) for value in values]) if isinstance(values[0], list) else pandas.Series(values)


def polars_columns(values):
    polars = pytest.importorskip("polars", reason="polars is not installed")
    yield polars.Series(values)
    kind = polars.List(polars.Categorical) if isinstance(values[0], list) else polars.Categorical
    yield polars.Series(values).cast(kind)


def arrow_columns(values):
    pyarrow = pytest.importorskip("pyarrow")
    yield pyarrow.array(values)
    yield pyarrow.chunked_array([values[:1], values[1:]])


@pytest.mark.filterwarnings("ignore")  # of the library, when it is imported
def dataset_columns(values):
    datasets = pytest.importorskip("datasets", reason="Hugging Face datasets is not installed")
    data = datasets.Dataset.from_dict({"it": values})
    yield from (data.with_format(form)["it"] for form in (None, "numpy", "pandas"))
    yield data.to_iterable_dataset()["it"]


KINDS = [pandas_columns, polars_columns, arrow_columns, dataset_columns]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("columns", KINDS)
def test_texts_and_labels_of_every_kind_of_column(columns):
    for column in columns(TEXTS):
        assert as_texts(column) == TEXTS and all(type(text) is str for text in as_texts(column))
    for column in columns(ONE):
        assert as_labels(column).tolist() == ONE
    for column in columns(MANY):
        assert as_labels(column).tolist() == [tuple(own) for own in MANY]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_tables_of_indicators_keep_the_names_of_their_columns(library):
    frames = pytest.importorskip(library, reason=f"{library} is not installed")
    table = frames.DataFrame({"ripe": [1, 0, 1], "round": [0, 1, 1]})
    model = zoo.make("tfidf-svm").fit(TEXTS, table)
    assert model.classes_.tolist() == ["ripe", "round"] and model.predict(TEXTS).tolist() == table.to_numpy().tolist()
    one = frames.DataFrame({"text": TEXTS})
    assert as_texts(one) == TEXTS and as_labels(frames.DataFrame({"y": ONE})).tolist() == ONE
    with pytest.raises(InputError, match="a table of ripe, round; pass one column"):
        as_texts(table)


def test_what_is_missing_is_named():
    pandas = pytest.importorskip("pandas")
    for labels in (["a", None], [1.5, float("nan")], pandas.Series(["a", pandas.NA], dtype="string")):
        with pytest.raises(InputError, match="the label of document 1 is missing"):
            as_examples(["x", "y"], labels)
    with pytest.raises(InputError, match="a dict of train, test; pass one column"):
        as_texts({"train": TEXTS, "test": TEXTS})


def test_a_frame_that_is_not_read_yet_is_refused():
    polars = pytest.importorskip("polars", reason="polars is not installed")
    with pytest.raises(InputError, match="LazyFrame, which is not read yet"):
        as_texts(polars.DataFrame({"text": TEXTS}).lazy())


def test_nullable_integers_are_numbers_also_when_loaded(tmp_path, fruit_corpus):
    pandas = pytest.importorskip("pandas")
    stars = pandas.Series([k % 2 for k in range(40)], dtype="Int64")
    options = {"hidden": 4, "vector_size": 4, "max_epochs": 1, "device": "cpu", "vectors": None}
    model = MPADClassifier(random_state=0, **options).fit(fruit_corpus[0][:40], stars)
    model.save(tmp_path / "m")
    assert MPADClassifier.load(tmp_path / "m").predict(["a plum"]).dtype == np.int64


def test_plain_values_stay_what_they_are():
    assert as_list([1, "a", 2.5, [1], None]) == [1, "a", 2.5, [1], None] and as_list(np.array([1, 2])) == [1, 2]
    assert column_names([1]) is None and column_names(np.zeros((2, 2))) is None
