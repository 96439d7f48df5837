import re

import pytest

from mpad import MPADClassifier
from mpad.evaluate.report import make_report


@pytest.fixture(scope="module")
def many(fruit_corpus):
    texts, labels = fruit_corpus
    tags = [
        [label, *(["long <b>"] if len(text.split()) > 8 else [])] for text, label in zip(texts, labels, strict=True)
    ]
    options = {"hidden": 16, "vector_size": 16, "max_epochs": 12, "learning_rate": 0.02, "device": "cpu"}
    return (
        MPADClassifier(random_state=0, batch_size=16, vectors=None, **options).fit(texts, tags),
        texts[:30],
        tags[:30],
    )


def cells(page, name):
    """The numbers of a label's row."""
    row = re.search(rf"<tr><td>{re.escape(name)}</td>(.*?)</tr>", page)
    return [cell.replace(",", "") for cell in re.findall(r"<td class='number'>([^<]*)</td>", row[1])]


def test_many_labels_have_a_table_of_right_missed_and_wrongly_given(many):
    model, texts, tags = many
    truth = [["fruit", "weird"] if "tool" in own else own for own in tags]  # half of them labelled wrongly
    page = make_report(model, texts, truth, "tickets", mistakes=3)
    right = int(model.predict(texts)[:, model.classes_.tolist().index("fruit")].sum())  # all have it
    assert cells(page, "fruit")[:4] == ["30", str(right), str(30 - right), "0"]
    assert cells(page, "weird")[:4] == ["15", "0", "15", "0"] and "does not know weird" in page
    assert "micro-F1" in page and "macro-F1" in page and "right in all labels" in page and "Confusions" not in page
    assert page.count("class='mistake'") == 3 and re.search(r"<b>(fruit|tool)</b>, (missed|wrongly given) \(", page)
    assert "&lt;b&gt;" in page and "<b><b>" not in page and "<script" not in page


def test_what_speaks_for_each_label_is_named(many):
    model, texts, tags = many
    page = make_report(model, texts, tags, "tickets", mistakes=0)
    telling = page[page.index("Top features per class") :]
    assert re.search("<b>fruit</b></td><td>[^<]*(plum|apple|pear)", telling)
    assert re.search("<b>tool</b></td><td>[^<]*(saw|drill|hammer)", telling) and "mistakes" not in telling


def test_one_label_has_its_confusions(fitted_flat, fruit_corpus):
    texts, labels = fruit_corpus[0][:20], fruit_corpus[1][:20]
    page = make_report(fitted_flat, texts, labels, "fruit", mistakes=2, against=texts[:10])
    style = page[: page.index("</style>")]
    assert style.count("{") == style.count("}") > 10, "else what follows is read as part of another rule"
    assert "Confusions" in page and "micro-F1" not in page and cells(page, "fruit")[0] == "10" and "Drift" in page


def test_a_report_names_documents_and_classes_in_full(fitted_flat, fruit_corpus):
    texts = fruit_corpus[0][:20]
    truth = ["fruit", "a class with a long name"] * 10
    page = make_report(fitted_flat, texts, truth, "m", ids=[f"id-{k}" for k in range(20)])
    matrix = page.split("<h2>Confusions</h2>")[1].split("</table>")[0]
    assert "<span>a class with a long name</span>" in matrix  # a column's head, not cut
    mistakes = page.split("mistakes, and why</h2>")[1]
    assert "document id-1" in mistakes and "<h1>" not in mistakes  # one heading each
