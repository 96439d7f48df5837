import itertools
import json
import subprocess
import sys
from math import factorial

import numpy as np
import pytest

from mpad.errors import InputError
from mpad.explain import explain, find_counterfactual
from mpad.explain.shapley import interactions, shapley_values

TEXT = "the pear was on a saw"


def test_shapley_values_are_the_mean_over_all_orders():
    n, values = 4, np.random.default_rng(0).normal(size=16)
    expected = np.zeros(n)
    for order in itertools.permutations(range(n)):
        before = 0
        for player in order:
            expected[player] += values[before | 1 << player] - values[before]
            before |= 1 << player
    assert shapley_values(values, n) == pytest.approx(expected / factorial(n))
    assert shapley_values(values, n).sum() == pytest.approx(values[-1] - values[0])


def test_interactions_are_those_of_a_game_of_pairs():
    # v(S) = the sum of single values, and of pair values of the pairs in S: the index gives exactly the pairs.
    n, generator = 5, np.random.default_rng(1)
    single, pair = generator.normal(size=n), np.triu(generator.normal(size=(n, n)), 1)
    values = np.zeros(2**n)
    for subset in range(2**n):
        inside = [k for k in range(n) if subset >> k & 1]
        values[subset] = single[inside].sum() + pair[np.ix_(inside, inside)].sum()
    assert interactions(values, n) == pytest.approx(pair + pair.T)
    assert shapley_values(values, n) == pytest.approx(single + (pair + pair.T).sum(1) / 2)


def test_the_weights_add_up_from_the_baseline_of_gradients(fitted):
    exact = explain(fitted.model_, TEXT, method="shapley")
    gradients = explain(fitted.model_, TEXT)
    assert exact.baseline + sum(word.weight for word in exact.words) == pytest.approx(exact.total, abs=1e-6)
    assert exact.baseline == pytest.approx(gradients.baseline, abs=1e-4)
    assert exact.total == pytest.approx(gradients.total, abs=1e-6)
    strength = [abs(value) for _, _, value in exact.pairs]
    assert len(strength) == 15 and strength == sorted(strength, reverse=True)
    assert json.dumps(exact.to_dict())


def test_a_long_text_has_no_exact_values(fitted_flat):
    with pytest.raises(InputError, match="up to 12 words, this one has 13"):
        fitted_flat.explain("a " * 13, method="shapley")


@pytest.mark.parametrize("method", ["gradients", "occlusion", "shapley"])
def test_why_one_class_rather_than_another(fitted_flat, method):
    one = fitted_flat.explain(TEXT, "fruit", method=method, against="tool")
    other = fitted_flat.explain(TEXT, "tool", method=method, against="fruit")
    logits = fitted_flat.model_.logits([TEXT])[0]
    assert one.total == pytest.approx(float(logits[0] - logits[1]), abs=1e-5) and one.against == "tool"
    assert [word.weight for word in one.words] == pytest.approx([-word.weight for word in other.words], abs=1e-3)
    assert "tool" in one.legend and "and not" in one.to_html()


def test_there_must_be_another_class(fitted_flat):
    for label, against, method, message in (
        ("fruit", "fruit", "gradients", "name another one"),
        ("fruit", "meat", "gradients", "no class 'meat'"),
        ("fruit", "tool", "attention", "the same for all classes"),
    ):
        with pytest.raises(InputError, match=message):
            fitted_flat.explain(TEXT, label, method=method, against=against)


def test_the_smallest_change_is_the_smallest(fitted_flat):
    model = fitted_flat.model_
    for text in ("the pear was on it", "the saw was with a drill", TEXT, "a plum and an apple and a pear"):
        before, found = fitted_flat.predict([text])[0], find_counterfactual(model, text)
        words = text.split()
        smaller = range(1, (found and len(found.removed)) or 3)
        for size in smaller:
            for removed in itertools.combinations(range(len(words)), size):
                rest = " ".join(word for k, word in enumerate(words) if k not in removed)
                if found is None or size < len(found.removed):
                    assert fitted_flat.predict([rest])[0] == before
        if found is not None:
            rest = " ".join(word for k, word in enumerate(words) if k not in found.removed)
            assert fitted_flat.predict([rest])[0] == found.new_label != found.label == before
            assert found.words == tuple(words[k] for k in found.removed)
            assert found.probability == pytest.approx(fitted_flat.predict_proba([rest])[0].max(), abs=1e-5)


def test_nothing_changes_a_text_without_words(fitted_flat):
    assert find_counterfactual(fitted_flat.model_, "") is None
    with pytest.raises(InputError, match="from 1 to 5"):
        fitted_flat.smallest_change(TEXT, most=9)


def test_the_command_gives_all_three(fitted_flat, tmp_path):
    fitted_flat.save(tmp_path / "model")

    def run(*options):
        command = [sys.executable, "-m", "mpad", "explain", "model", "the pear was on it", *options]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=1_200)

    against = json.loads(run("--against", "tool", "--format", "json").stdout)
    assert against["against"] == "tool" and against["label"] == "fruit"
    assert json.loads(run("--method", "shapley", "--format", "json").stdout)["pairs"]
    change = run("--change")
    assert change.returncode == 0 and len(change.stdout.splitlines()) == 1
    assert run("--against", "meat").returncode == 1
    assert run("--change", "--out", "x.html").returncode == 1
