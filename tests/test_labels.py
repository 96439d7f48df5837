import numpy as np
import pytest

from mpad.errors import InputError
from mpad.labels import Labels, learn_labels


@pytest.mark.parametrize("y", [["b", "a", "b"], [3, 1, 3], [True, False, True], [0.5, 1.5, 0.5]])
def test_any_kind_of_label_there_and_back(y):
    labels = learn_labels(np.array(y))
    assert labels.classes[labels.encode(np.array(y))].tolist() == y
    again = Labels.from_json(labels.to_json())
    assert again.classes.tolist() == labels.classes.tolist() and again.classes.dtype.kind == labels.classes.dtype.kind


@pytest.mark.parametrize(
    ("y", "said"),
    [
        (["a", "a"], "at least two classes in y; found only"),
        ([], "found none"),
        ([[0, 2], [1, 1]], "only 0 and 1"),
        ([[0, 1], [0, 1]], "every column of y is constant"),
        ([np.nan, 1.0], "NaN"),
        ([[[1]]], "found shape"),
    ],
)
def test_labels_that_cannot_be_learnt(y, said):
    with pytest.raises(InputError, match=said):
        learn_labels(np.array(y))


def test_labels_of_mixed_types():
    with pytest.raises(InputError, match="mix types"):
        learn_labels(np.array(["a", 1, None], dtype=object))


def test_probabilities_and_decisions():
    logits = np.array([[1000.0, 0.0], [-1.0, 1.0]], np.float32)
    single, many = Labels(np.array(["n", "y"])), Labels(np.arange(2), multilabel=True)
    assert np.allclose(single.probabilities(logits).sum(1), 1) and single.decide(logits).tolist() == ["n", "y"]
    assert many.decide(logits).tolist() == [[1, 0], [0, 1]] and np.isfinite(many.probabilities(logits)).all()


def test_class_weights():
    labels = learn_labels(np.array(["a", "a", "a", "b"]))
    encoded = labels.encode(np.array(["a", "a", "a", "b"]))
    assert labels.weights(None, encoded).tolist() == [1, 1, 1, 1]
    assert labels.weights({"b": 5.0}, encoded).tolist() == [1, 1, 1, 5]
    balanced = labels.weights("balanced", encoded)
    assert np.isclose(balanced[:3].sum(), balanced[3])
    with pytest.raises(InputError, match="does not have"):
        labels.weights({"z": 1.0}, encoded)
    with pytest.raises(InputError, match="must be 'balanced'"):
        labels.weights("even", encoded)


def test_unknown_labels_are_named():
    with pytest.raises(InputError, match="'c' is not among"):
        learn_labels(np.array(["a", "b"])).encode(np.array(["a", "c"]))
