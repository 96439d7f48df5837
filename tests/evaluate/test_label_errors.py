import csv
import subprocess
import sys

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from mpad.data.labels import learn_labels
from mpad.errors import InputError
from mpad.evaluate import find_label_errors
from mpad.evaluate.doctor import examine, find_confusions, to_html
from mpad.evaluate.label_errors import suspicious_labels
from mpad.evaluate.neighbors import Neighborhoods, name_topics, near_duplicates, nearest, text_vectors
from mpad.evaluate.out_of_fold import OutOfFold, predict_out_of_fold
from mpad.evaluate.slices import bins, score_slices

FRUIT = "apple banana cherry melon grape".split()
TOOLS = "hammer wrench chisel pliers drill".split()
FILLER = "the old one lay on a table near my door while we talked about it".split()


@pytest.fixture(scope="module")
def flipped():
    """Return texts, labels of which a tenth are wrong, and which these are."""
    generator = np.random.default_rng(3)
    truth = np.arange(120) % 2
    texts = []
    for kind in truth:
        own = generator.choice((FRUIT, TOOLS)[kind], 3).tolist()
        texts.append(" ".join([*own, *generator.choice(FILLER, 6)]))
    wrong = np.zeros(120, bool)
    wrong[generator.permutation(120)[:12]] = True
    names = np.array(["fruit", "tool"])
    return texts, names[np.where(wrong, 1 - truth, truth)].tolist(), wrong


def plain():
    return make_pipeline(TfidfVectorizer(), LogisticRegression(C=10))


def test_wrong_labels_are_found_with_the_words_behind_them(flipped):
    texts, labels, wrong = flipped
    errors = find_label_errors(texts, labels)
    found = np.array([error.row for error in errors])
    assert wrong[found].mean() > 0.9 and wrong[found].sum() >= 7
    best = errors[0]
    assert best.suggested != best.label == labels[best.row] and best.text == texts[best.row]
    assert best.suggested_probability > best.probability
    assert set(best.words) & {*FRUIT, *TOOLS}


def test_any_classifier_with_probabilities_can_find_them(flipped):
    texts, labels, wrong = flipped
    calls = []
    errors = find_label_errors(texts, labels, classifier=plain(), folds=4, done=lambda: calls.append(1))
    assert wrong[[error.row for error in errors]].mean() > 0.8 and len(calls) == 4
    assert errors[0].words == (), "it has no explanations"


def test_no_document_is_predicted_by_a_model_that_saw_it_or_a_copy(flipped):
    texts, labels, _ = flipped
    seen = []

    class Watching(LogisticRegression):
        def fit(self, X, y):
            self.texts_ = set(X)
            return super().fit(np.array([[len(text)] for text in X]), y)

        def predict_proba(self, X):
            seen.append(self.texts_ & set(X))
            return super().predict_proba(np.array([[len(text)] for text in X]))

    doubled = [*texts, *texts[:20]]
    known = learn_labels(np.array([*labels, *labels[:20]]))
    targets = known.encode(np.array([*labels, *labels[:20]]))
    predictions = predict_out_of_fold(Watching(), doubled, known, targets)
    assert len(seen) == 3 and not any(seen)
    assert np.allclose(predictions.probabilities.sum(1), 1)


def test_a_label_is_suspicious_if_another_class_is_as_probable_as_usual_there():
    probabilities = np.array([[0.9, 0.1], [0.8, 0.2], [0.85, 0.15], [0.2, 0.8], [0.45, 0.55]])
    targets = np.array([0, 0, 1, 1, 0])
    # The mean probability of class 0 among its documents is 0.72; of class 1 among its own, 0.475.
    suspicious, other = suspicious_labels(probabilities, targets)
    assert suspicious.tolist() == [False, False, True, False, True]
    assert other.tolist() == [1, 1, 0, 0, 1]


def test_what_cannot_be_examined_is_refused(flipped):
    texts, labels, _ = flipped
    with pytest.raises(InputError, match="one label per document"):
        find_label_errors(texts[:2], [["a"], ["a", "b"]])
    with pytest.raises(InputError, match="class 'odd' has one document"):
        find_label_errors([*texts, "an odd text"], [*labels, "odd"])
    with pytest.raises(InputError, match="at least 2"):
        find_label_errors(texts, labels, folds=1)


# ── Neighbors, slices ──


def test_nearest_vectors_come_first():
    vectors = np.eye(4, dtype=np.float32)
    rows, cosines = nearest(vectors, np.array([[0.1, 0.9, 0.3, 0.0]], np.float32), 2)
    assert rows.tolist() == [[1, 2]] and cosines[0] == pytest.approx([0.9, 0.3])
    assert nearest(vectors, vectors[:1], 9)[0].shape == (1, 4)


def test_near_duplicates_and_outliers():
    texts = [f"please send the invoice for order number {k} to my office address" for k in range(3)]
    texts += [" ".join(np.random.default_rng(k).choice([*FRUIT, *TOOLS, *FILLER], 8)) for k in range(30)]
    texts += [texts[5].upper(), "zzkq 9f3a xxwv qqpl bbnm"]
    neighborhoods = Neighborhoods.of(text_vectors(texts))
    groups = near_duplicates(texts, neighborhoods)
    assert [0, 1, 2] in groups and [5, 33] in groups
    own = np.arange(len(texts))[:, None]
    assert (neighborhoods.rows != own).all(), "no document is its own neighbor"


def test_texts_of_other_languages_have_vectors_too():
    texts = [f"der hund und die katze laufen über die straße nummer {k}" for k in range(12)]
    texts += [f"heute gibt es kartoffeln mit soße und salat {k}" for k in range(12)]
    vectors = text_vectors(texts)
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[20]


def test_topics_are_named_by_their_words():
    texts = [" ".join(np.random.default_rng(k).choice(FRUIT if k % 2 else TOOLS, 6)) for k in range(200)]
    names = name_topics(texts, text_vectors(texts))
    assert len(set(names)) == 2 and names[0] != names[1]
    assert set(names[1].split(", ")) <= set(FRUIT)


def test_slices_are_sorted_by_mistakes_above_the_average():
    right = np.array([True] * 90 + [False] * 30)
    source = ["web"] * 80 + ["phone"] * 40
    slices = score_slices(
        right, {"source": source, "size": list(range(120)), "note": [f"note {k}" for k in range(120)]}
    )
    assert {one.column for one in slices} == {"source", "size"}, "a column of different strings is left out"
    weak = [one for one in slices if one.is_weak(0.75)]
    assert ("source", "phone") in {(one.column, one.value) for one in weak}
    assert sum(one.documents for one in slices if one.column == "size") == 120


def test_values_are_grouped():
    assert bins(["a", None, " b ", ""]) == ["a", "(none)", "b", "(none)"]
    quarters = bins([*range(100), None])
    assert quarters[0].startswith("up to") and quarters[99].startswith("above") and quarters[100] == "(none)"
    assert bins([f"word {k}" for k in range(40)]) is None


# ── The examination ──


def test_confused_classes_come_first():
    labels = learn_labels(np.array(["a", "b", "c"]))
    targets = np.array([0] * 10 + [1] * 10 + [2] * 10)
    predicted = np.array([0] * 5 + [1] * 5 + [0] * 5 + [1] * 5 + [2] * 9 + [0])
    first, second = find_confusions(OutOfFold([""] * 30, labels, targets, np.eye(3)[predicted], [], targets))
    assert (first.first, first.second, first.share, first.may_be_one) == ("a", "b", 0.5, True)
    assert (second.first, second.second, second.confused, second.may_be_one) == ("a", "c", 1, False)


def test_the_examination_finds_what_was_hidden_in_the_data(flipped):
    texts, labels, wrong = flipped
    texts, labels = list(texts), list(labels)
    texts += [texts[0], "das ist ein satz auf deutsch und er ist nicht sehr lang aber lang genug"]
    labels += ["tool" if labels[0] == "fruit" else "fruit", "tool"]
    diagnosis = examine(texts, labels, columns={"source": ["web", "mail"] * 61})
    assert [120] == [row for row in diagnosis.conflicts[0] if row >= 120]
    assert (121, "German") in diagnosis.foreign
    assert {"class", "words", "source"} <= {one.column for one in diagnosis.slices}
    page = to_html(diagnosis, "fruit <and> tools")
    assert "fruit &lt;and&gt; tools" in page and "<script" not in page and diagnosis.errors[0].text in page
    columns, rows = diagnosis.table()
    assert len(columns) == 4 and any(row[1] == len(diagnosis.errors) for row in rows)


def test_the_command_writes_corrections_that_fit_reads(flipped, tmp_path):
    texts, labels, wrong = flipped
    data = tmp_path / "data.csv"
    with data.open("w", newline="") as file:
        csv.writer(file).writerows([("id", "text", "label", "source")])
        csv.writer(file).writerows((f"d{k}", *row, "web") for k, row in enumerate(zip(texts, labels, strict=True)))

    def run(*arguments):
        command = [sys.executable, "-m", "mpad", *map(str, arguments)]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=1_200)

    found = run("doctor", data, "--out", "page.html", "--corrections", "fixes.csv", "--slices", "source")
    assert found.returncode == 0, found.stderr
    with (tmp_path / "fixes.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    at = [int(row["id"].removeprefix("d")) for row in rows]
    assert wrong[at].mean() > 0.9 and all(labels[k] == row["old_label"] for k, row in zip(at, rows, strict=True))
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")
    fitted = run("fit", data, "--add", "fixes.csv", "--out", "model")
    assert fitted.returncode == 0 and f"{len(rows)} labels corrected, 0 documents added" in fitted.stderr
    refused = run("doctor", data, "--slices", "nowhere")
    assert refused.returncode == 1 and "no column 'nowhere' for --slices" in refused.stderr
    assert run("doctor", data, "--out", "page.html").returncode == 1, "the page is there already"
