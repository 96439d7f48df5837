import numpy as np
import pytest

from mpad.data.inputs import as_labels
from mpad.data.labels import Labels, fit_thresholds, learn_labels
from mpad.errors import InputError


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


def test_thresholds_are_where_f1_is_best():
    generator = np.random.default_rng(0)
    truth = (generator.random((4000, 3)) < [0.5, 0.1, 0.002]).astype(np.float32)
    logits = 3 * truth + generator.normal(size=truth.shape) - [1.5, 3.0, 3.0]
    probabilities = 1 / (1 + np.exp(-logits))
    thresholds = fit_thresholds(probabilities, truth)
    assert thresholds[0] == pytest.approx(0.5, abs=0.11), "even, symmetric: about a half"
    assert thresholds[1] < 0.5, "rare and shifted down: given earlier"
    truths = truth > 0.5

    def f1(column, threshold):
        given = probabilities[:, column] > threshold
        return 2 * (given & truths[:, column]).sum() / (given.sum() + truths[:, column].sum())

    assert f1(1, thresholds[1]) > f1(1, 0.5) + 0.02
    assert truths[:, 2].sum() < 20, "too few for a threshold of its own: that of all labels together"
    assert 0 < thresholds[2] < 1


def test_thresholds_decide_and_are_kept():
    labels = Labels(np.arange(2), multilabel=True, thresholds=np.array([0.2, 0.9]))
    logits = np.log(np.array([[0.3, 0.8], [0.1, 0.95]]) / (1 - np.array([[0.3, 0.8], [0.1, 0.95]])))
    assert labels.decide(logits.astype(np.float32)).tolist() == [[1, 0], [0, 1]]
    again = Labels.from_json(labels.to_json())
    assert again.thresholds.tolist() == [0.2, 0.9]
    for wrong in ([0.5], [0.0, 0.5], [0.5, "x"], "half"):
        with pytest.raises(ValueError, match="one per label"):
            Labels.from_json({**labels.to_json(), "thresholds": wrong})


def test_thresholds_without_documents_are_a_half():
    assert fit_thresholds(np.zeros((0, 2)), np.zeros((0, 2))).tolist() == [0.5, 0.5]


@pytest.mark.parametrize("label", ["a\ud800", "\udfff"])
def test_half_a_surrogate_pair_is_refused(label):
    for y in ([label, "b"], [[label], ["b"]]):
        with pytest.raises(InputError, match="surrogate|kept"):
            as_labels(y)
    with pytest.raises(ValueError, match="surrogate"):
        Labels.from_json({"classes": sorted([label, "b"]), "type": "U", "multilabel": False})
