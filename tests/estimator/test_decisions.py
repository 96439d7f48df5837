import csv
import json
import subprocess
import sys

import numpy as np
import pytest

from mpad import MPADClassifier
from mpad.data.labels import Labels
from mpad.errors import DataWarning, InputError
from mpad.estimator.decisions import UNDECIDED, choose_decisions, read_costs
from mpad.evaluate import evaluate


@pytest.fixture
def predictions():
    """Return labels, probabilities of three classes and targets; the third class is rare and hard to find."""
    generator = np.random.default_rng(0)
    targets = generator.choice(3, 600, p=[0.6, 0.35, 0.05])
    logits = generator.normal(0, 1, (600, 3)) + np.log([0.6, 0.35, 0.05])
    logits[np.arange(600), targets] += 1.5
    probabilities = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    return Labels(np.array(["a", "b", "c"])), probabilities, targets


def test_a_precision_leaves_uncertain_documents_undecided(predictions):
    labels, probabilities, targets = predictions
    before = (probabilities.argmax(1) == targets).mean()
    chosen = choose_decisions(labels, probabilities, targets, precision=0.9)
    assert all(each.precision.value >= 0.9 for each in chosen.classes if each.decided)
    assert before < 0.9 <= chosen.accuracy.value and 0 < chosen.coverage.value < 1
    column = chosen.labels.choose(probabilities)
    lower = chosen.labels.thresholds[0] - 1e-9
    assert ((column == -1) | (probabilities.max(1) > 0)).all() and lower > 0
    assert set(column[column >= 0]) == set(probabilities.argmax(1)[column >= 0]), "a decided class is the most probable"


def test_a_precision_that_holds_already_changes_nothing(predictions):
    labels, probabilities, targets = predictions
    chosen = choose_decisions(labels, probabilities, targets, precision=0.01)
    assert (chosen.labels.thresholds == 0).all() and chosen.coverage.value == 1


def test_a_precision_that_cannot_be_had_decides_nothing(predictions):
    labels, probabilities, targets = predictions
    chosen = choose_decisions(labels, probabilities, (targets + 1) % 3, precision=0.999, only=["a"])
    assert chosen.classes[0].threshold == 1.0 and chosen.classes[0].decided == 0
    assert chosen.classes[1].threshold == 0.0


def test_a_recall_prefers_the_classes_that_are_missed(predictions):
    labels, probabilities, targets = predictions
    plain = (probabilities.argmax(1) == 2)[targets == 2].mean()
    chosen = choose_decisions(labels, probabilities, targets, recall=0.8, only=["c"])
    assert plain < 0.8 <= chosen.classes[2].recall.value
    assert chosen.coverage.value == 1 and chosen.classes[2].cost > chosen.classes[0].cost == 1


def test_the_least_expected_cost_decides(predictions):
    labels, probabilities, targets = predictions
    costs = np.array([[0, 1, 1, 0.3], [1, 0, 1, 0.3], [9, 9, 0, 0.3]])
    column = choose_decisions(labels, probabilities, targets, costs=costs).labels.choose(probabilities)
    expected = (probabilities @ costs).argmin(1)
    assert column.tolist() == np.where(expected == 3, -1, expected).tolist() and (column == -1).any()


def test_goals_are_checked(predictions):
    labels, probabilities, targets = predictions
    for goal, message in (
        ({}, "state a goal"),
        ({"precision": 1.5}, "above 0 and below 1"),
        ({"recall": 0.5, "costs": np.ones((3, 3))}, "state one of them"),
        ({"precision": 0.9, "only": ["x"]}, "no class 'x'"),
    ):
        with pytest.raises(InputError, match=message):
            choose_decisions(labels, probabilities, targets, **goal)
    with pytest.raises(InputError, match="there are none"):
        choose_decisions(labels, probabilities[:0], targets[:0], precision=0.9)
    with pytest.raises(InputError, match="one label per document"):
        choose_decisions(Labels(labels.classes, multilabel=True), probabilities, targets, precision=0.9)


def test_a_matrix_of_costs_is_read_by_its_names():
    content = "true,b,a,undecided\na,5,0,1\nb,0,2,1\n"
    assert read_costs(content, ["a", "b"]).tolist() == [[0, 5, 1], [2, 0, 1]]
    for wrong, message in (
        ("", "is empty"),
        ("x,a\na,0\n", "'b'"),
        ("x,a,b\na,0,1\nb,one,0\n", "not a number"),
        ("x,a,b\na,0,1\nb,-1,0\n", "from 0"),
    ):
        with pytest.raises(InputError, match=message):
            read_costs(wrong, ["a", "b"])


def test_labels_with_a_rule_survive_a_folder_and_nothing_else_is_read():
    labels = Labels(np.array(["a", "b"]), thresholds=np.array([0.7, 0.0]), costs=np.array([[0.0, 1, 0.5], [2, 0, 0.5]]))
    again = Labels.from_json(json.loads(json.dumps(labels.to_json())))
    assert again.thresholds.tolist() == [0.7, 0.0] and again.costs.tolist() == labels.costs.tolist()
    for costs in ([[0, 1]], [[0, 1], [1]], [[0, -1], [1, 0]], [[0, float("inf")], [1, 0]], "none", [["0", 1], [1, 0]]):
        with pytest.raises(ValueError, match="costs"):
            Labels.from_json({**labels.to_json(), "costs": costs})
    with pytest.raises(ValueError, match="thresholds"):
        Labels.from_json({**labels.to_json(), "thresholds": [0.5, 1.5]})


def test_a_model_keeps_its_decisions(fitted_flat, fruit_corpus, tmp_path):
    fitted_flat.save(tmp_path / "model")
    model = MPADClassifier.load(tmp_path / "model")
    unseen = ["a pear on the table", "the saw was in it", *["it was on the table with his"] * 2] * 10
    truth = ["fruit", "tool", "fruit", "tool"] * 10
    model.choose_thresholds(unseen, truth, precision=0.9)
    model.save(tmp_path / "model")
    again = MPADClassifier.load(tmp_path / "model")
    predicted = again.predict(unseen[:4]).tolist()
    assert predicted == ["fruit", "tool", None, None]
    assert again.predict_proba(unseen[:4]).shape == (4, 2)
    scores = evaluate(again, unseen, truth)
    assert UNDECIDED in scores.predicted and not scores.decided.all()
    assert any("decided" in line for line in scores.lines())
    with pytest.warns(DataWarning, match="was trained on"):
        model.choose_thresholds(*fruit_corpus, precision=0.9)


def test_the_command_stores_them_and_predict_follows(fitted_flat, tmp_path):
    fitted_flat.save(tmp_path / "model")
    rows = [("a pear on the table", "fruit"), ("the saw was in it", "tool"), ("on the table with his", "fruit")] * 8
    with (tmp_path / "held.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("text", "label"), *rows, *[("on the table with his", "tool")] * 8])

    def run(*arguments):
        command = [sys.executable, "-m", "mpad", *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=1_200)

    chosen = run("thresholds", "model", "held.csv", "--precision", "0.95")
    assert chosen.returncode == 0 and "saved to model" in chosen.stderr, chosen.stderr
    predicted = run("predict", "model", "held.csv", "--format", "jsonl")
    labels = [json.loads(line)["predicted label"] for line in predicted.stdout.splitlines()]
    assert labels[:3] == ["fruit", "tool", None]
    assert run("thresholds", "model", "held.csv").returncode == 1
    (tmp_path / "costs.csv").write_text("true,fruit,tool\nfruit,0,1\ntool,1,0\n")
    assert run("thresholds", "model", "held.csv", "--costs", "costs.csv", "--out", "other").returncode == 0
    again = run("predict", "other", "held.csv", "--format", "jsonl")
    assert None not in [json.loads(line)["predicted label"] for line in again.stdout.splitlines()]


def test_balanced_classes_are_found_more_often():
    generator = np.random.default_rng(5)
    words = [f"word{k}" for k in range(60)]
    texts, labels = [], []
    for k in range(900):
        rare = k % 18 == 0
        own = generator.choice(words[:20] if rare else words[10:], 2)
        texts.append(" ".join([*own, *generator.choice(words, 6)]))
        labels.append("rare" if rare else "common")
    recalls = {}
    for weight in (None, "balanced"):
        model = MPADClassifier(encoder=None, hidden=8, vector_size=8, max_epochs=4, verbose=False, random_state=0)
        model.set_params(class_weight=weight).fit(texts[:600], labels[:600])
        truth = np.array(labels[600:])
        recalls[weight] = (model.predict(texts[600:]) == "rare")[truth == "rare"].mean()
    assert recalls["balanced"] > recalls[None] + 0.2
