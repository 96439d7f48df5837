"""Texts without labels: used where cross-validation says that they help."""

import subprocess
import sys

import numpy as np
import pytest

from mpad import MPADClassifier
from mpad.encoder import load_encoder
from mpad.errors import InputError
from mpad.estimator import classifier as fitting

# Classes that no encoder can know: forty nouns, dealt out by chance.
NOUNS = (
    "apple river table cloud horse stone paper window garden bridge candle mirror pencil basket bottle hammer ladder "
    "pillow carpet button engine ticket letter island forest desert valley castle temple harbor market theater museum "
    "school office kitchen bedroom corner village planet"
).split()
LEFT = set(np.random.default_rng(4).permutation(NOUNS)[:20].tolist())


def sentences(n, seed):
    """Return texts of two nouns of one class, and the classes."""
    generator = np.random.default_rng(seed)
    sides = generator.integers(2, size=n)
    words = [sorted(LEFT) if side else sorted(set(NOUNS) - LEFT) for side in sides]
    pairs = [generator.choice(own, 2, replace=False) for own in words]
    return [f"the {a} and the {b} {k}" for k, (a, b) in enumerate(pairs)], ["left" if x else "right" for x in sides]


def trained(**options):
    return MPADClassifier(random_state=0, device="cpu", verbose=False, **options)


@pytest.fixture(scope="module")
def labeled():
    return sentences(20, seed=1)


@pytest.fixture(scope="module")
def unlabeled():
    return sentences(400, seed=2)


@pytest.fixture(autouse=True)
def no_teachers(monkeypatch):
    monkeypatch.setattr(fitting, "installed_teachers", lambda device: [])


def as_probabilities(classes):
    return np.array([[0.9, 0.1] if name == "left" else [0.1, 0.9] for name in classes])


def test_probabilities_of_unlabeled_texts_are_used_where_they_help(labeled, unlabeled):
    texts, classes = unlabeled
    tested = sentences(300, seed=3)
    alone = trained().fit(*labeled)
    model = trained().fit(*labeled, unlabeled=(texts, as_probabilities(classes)))
    assert model.unlabeled_.used and model.unlabeled_.documents in (399, 400)  # less a copy
    assert model.unlabeled_.accuracies[model.unlabeled_.labeled_by] > model.unlabeled_.accuracies[""]
    assert model.score(*tested) > max(alone.score(*tested), 0.98)
    assert model.held_out_.documents == len(labeled[0])  # unlabeled texts are never scored
    assert alone.unlabeled_ is None


def test_wrong_probabilities_change_nothing(labeled, unlabeled):
    texts, classes = unlabeled
    random = np.random.default_rng(0).dirichlet([1, 1], len(texts))
    model = trained().fit(*labeled, unlabeled=(texts, random))
    assert not model.unlabeled_.used and "no clear gain" in str(model.unlabeled_)
    plain = trained().fit(*labeled)
    probe = sentences(50, seed=5)[0]
    assert np.allclose(model.predict_proba(probe), plain.predict_proba(probe), atol=1e-5)


def test_an_installed_teacher_labels_texts(labeled, unlabeled, monkeypatch):
    class Teacher:
        title = "oracle"

        def vectors(self, texts):
            sides = [[len(LEFT & set(text.split())), len(set(NOUNS) - LEFT & set(text.split()))] for text in texts]
            return np.array([[left > 0, left == 0] for left, _ in sides], np.float16)

    monkeypatch.setattr(fitting, "installed_teachers", lambda device: [Teacher()])
    model = trained().fit(*labeled, unlabeled=unlabeled[0])
    assert model.unlabeled_.used and model.unlabeled_.labeled_by.startswith("oracle")
    assert model.score(*sentences(200, seed=3)) > 0.9


def test_without_a_teacher_it_says_what_to_install(labeled, unlabeled):
    model = trained().fit(*labeled, unlabeled=unlabeled[0])
    assert not model.unlabeled_.used and "install" in str(model.unlabeled_)


def test_with_many_labels_the_texts_are_left_out(unlabeled):
    model = trained(max_epochs=1).fit(*unlabeled, unlabeled=["something new", "something else"])
    assert not model.unlabeled_.used and model.n_iter_ == 1
    assert "not used" in str(model.unlabeled_)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (lambda texts: (texts, np.ones((3, 2))), "rows of 2 numbers"),
        (lambda texts: (texts, np.full((len(texts), 2), np.nan)), "no distribution"),
        (lambda texts: (texts, {"left": [0.5] * len(texts)}), "no column 'right'"),
        (lambda texts: "one text", "put it in a list"),
        (lambda texts: ["", " "], "holds no texts"),
    ],
)
def test_bad_input_is_refused_in_a_line(labeled, unlabeled, given, message):
    with pytest.raises(InputError, match=message):
        trained().fit(*labeled, unlabeled=given(unlabeled[0]))


def test_copies_of_labeled_texts_are_left_out(labeled):
    with pytest.raises(InputError, match="copy"):
        trained().fit(*labeled, unlabeled=labeled[0])


def test_several_labels_per_document_are_refused(labeled):
    texts = labeled[0]
    with pytest.raises(InputError, match="one label per document"):
        trained().fit(texts, [["left"], ["left", "right"]] * 10, unlabeled=["another text"])


def test_the_command_reads_probabilities_by_the_names_of_classes(labeled, unlabeled, tmp_path):
    def write(name, header, rows):
        (tmp_path / name).write_text("\n".join([header, *rows]) + "\n")

    write("labeled.csv", "text,label", [f"{text},{name}" for text, name in zip(*labeled, strict=True)])
    rows = [
        f"{text},{p},{1 - p}" for text, name in zip(*unlabeled, strict=True) for p in [0.9 if name == "left" else 0.1]
    ]
    write("more.csv", "text,left,right", rows)
    write("broken.csv", "text,left,right", ["a text,often,0.5"])

    def fit(more, out):
        command = [sys.executable, "-m", "mpad", "fit", "labeled.csv", "--unlabeled", more, "--out", out]
        return subprocess.run(command, capture_output=True, text=True, timeout=1_200, cwd=tmp_path)

    done = fit("more.csv", "model")
    assert done.returncode == 0, done.stderr
    assert "texts without labels labeled by the given probabilities" in done.stderr
    broken = fit("broken.csv", "other")
    assert broken.returncode == 1 and "'left'" in broken.stderr.splitlines()[-1] and not (tmp_path / "other").exists()


def test_the_encoder_itself_stays_as_it_is(labeled, unlabeled):
    before = load_encoder("auto").encode(["a text"])
    trained().fit(*labeled, unlabeled=(unlabeled[0], as_probabilities(unlabeled[1])))
    assert np.array_equal(load_encoder("auto").encode(["a text"]), before)


# ── Names of classes ──


def test_descriptions_of_classes_help_with_few_labels():
    texts = ["we lost the parcel", "charged twice", "arrived broken", "invoice is wrong"]
    labels = ["1", "2", "1", "2"]
    names = {"1": "delivery of a package by the courier", "2": "payment, refund, bank account"}
    model = trained().fit(texts, labels, class_names=names)
    assert model.class_names_used_ == 2 and model.held_out_.documents == len(texts)
    assert model.predict(["the courier never came", "my bank account", "a package"]).tolist() == ["1", "2", "1"]
    assert trained().fit(texts, labels).class_names_used_ is None


def test_the_more_labels_the_less_a_description_counts():
    names = {"left": "terrible, awful", "right": "wonderful, lovely"}
    misled = "wonderful and lovely"

    def probability(n):
        texts = [f"{word} {k}" for k in range(n) for word in ("wonderful and lovely day", "terrible and awful day")]
        model = trained().fit(texts, ["left", "right"] * n, class_names=names)
        return model.predict_proba([misled])[0][model.classes_.tolist().index("left")]

    assert probability(2) < probability(10) < probability(60) and probability(60) > 0.5


def test_with_many_labels_names_of_classes_are_left_out(unlabeled):
    model = trained(max_epochs=1).fit(*unlabeled, class_names={"left": "one side"})
    assert model.class_names_used_ == 0 and model.n_iter_ == 1


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"up": "above"}, "no document has the label 'up'"),
        ({"left": 3}, "a text for each label"),
        (["x"], "must be a dict"),
    ],
)
def test_bad_names_of_classes_are_refused(labeled, names, message):
    with pytest.raises(InputError, match=message):
        trained().fit(*labeled, class_names=names)
