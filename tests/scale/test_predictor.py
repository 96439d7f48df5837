import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

from mpad import inference
from mpad.errors import InputError, StoreError
from mpad.scale import Predictor, predictor

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")


@pytest.fixture
def texts(fruit_corpus):
    return fruit_corpus[0][:7]


def expected(model, texts):
    p = inference.load(model).predict_proba(texts)
    return inference.load(model).predict(texts).tolist(), p


def test_every_form_of_batch_comes_back_in_its_own_form_with_columns_added(model, texts):
    labels, p = expected(model, texts)
    forms = {
        dict: {"id": np.arange(7), "text": np.array(texts, object)},
        pd.DataFrame: pd.DataFrame({"id": range(7), "text": texts}, index=range(10, 17)),
        pa.Table: pa.table({"id": range(7), "text": texts}),
        pa.RecordBatch: pa.RecordBatch.from_pydict({"id": list(range(7)), "text": texts}),
    }
    for form, batch in forms.items():
        answer = Predictor(model)(batch)
        assert type(answer) is form
        if form is pd.DataFrame:
            assert answer.index.tolist() == list(range(10, 17))
        columns = answer.to_pydict() if hasattr(answer, "to_pydict") else {name: list(answer[name]) for name in answer}
        assert list(columns) == ["id", "text", "label", "probability"] and list(columns["id"]) == list(range(7))
        assert columns["label"] == labels and np.allclose(columns["probability"], p.max(1))
        assert list(batch if form is dict else batch.columns if form is pd.DataFrame else batch.schema.names) == [
            "id",
            "text",
        ]


def test_what_is_asked_is_what_the_command_gives(model, texts):
    labels, p = expected(model, texts)
    table = pa.table({"text": texts, "label": ["own"] * 7})
    answer = Predictor(model, proba=True, top=3, reject_below=1.0)(table)
    assert answer.schema.names[1:4] == ["label", "predicted label", "class 1"]
    assert answer["label"].to_pylist() == ["own"] * 7 and answer["predicted label"].to_pylist() == [None] * 7
    assert answer["class 1"].to_pylist() == labels and answer["probability 3"].to_pylist() == [None] * 7
    assert np.allclose(answer["p(tool)"], p[:, 1]) and str(answer.schema.field("class 3").type) == "string"


def test_many_labels_are_lists(many, texts):
    answer = Predictor(many, proba=True)(pa.table({"text": texts}))
    model = inference.load(many)
    assert answer["label"].to_pylist() == model.labels.to_names(model.predict(texts))
    assert answer.schema.names == ["text", "label", "p(food)", "p(metal)", "p(tree)"]
    assert Predictor(many, threshold=0.0)({"text": texts})["label"].tolist() == [["food", "metal", "tree"]] * 7
    assert Predictor(many, threshold=1.0)(pd.DataFrame({"text": texts}))["label"].tolist() == [[]] * 7


def test_missing_texts_are_empty_and_no_rows_are_no_rows(model):
    batch = pd.DataFrame({"text": ["a plum", None, float("nan"), pd.NA, ""]})
    answer = Predictor(model)(batch)
    assert len(answer) == 5 and np.ptp(answer["probability"].iloc[1:]) < 1e-6
    nothing = Predictor(model)(pa.table({"text": pa.array([], "string")}))
    assert nothing.num_rows == 0 and nothing.schema.names == ["text", "label", "probability"]
    assert Predictor(model)({"text": np.array([], object)})["probability"].dtype == np.float64


def test_what_cannot_be_scored_is_said(model, tmp_path):
    with pytest.raises(InputError, match="no column 'text' in this batch .there are: body.; set text="):
        Predictor(model)({"body": np.array(["a"])})
    with pytest.raises(InputError, match="column 'text' holds int"):
        Predictor(model)(pa.table({"text": [1, 2]}))
    with pytest.raises(InputError, match="found list"):
        Predictor(model)(["a"])
    with pytest.raises(InputError, match="top must be at least 1"):
        Predictor(model, top=0)
    with pytest.raises(StoreError, match="no such folder"):
        Predictor(tmp_path / "gone")({"text": np.array(["a"])})


def test_a_process_reads_the_model_once_and_needs_no_torch(model, monkeypatch):
    one = Predictor(model, top=2)
    one({"text": np.array(["a plum"])})
    assert len(pickle.dumps(one)) < 1000  # the model itself stays where it is
    monkeypatch.setattr(predictor, "TextModel", None)  # would fail if it were asked
    again = pickle.loads(pickle.dumps(one))({"text": np.array(["a plum"])})
    assert again["class 1"].tolist() == ["fruit"]
    code = (
        "import sys, pickle; from mpad.scale import Predictor\n"
        f"answer = pickle.loads({pickle.dumps(one)!r})({{'text': ['a plum']}})\n"
        "assert answer['label'].tolist() == ['fruit'], answer\n"
        "sys.exit('torch' in sys.modules or 'pandas' in sys.modules)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run([sys.executable, "-c", code], env=environment).returncode == 0
