import numpy as np
import pandas as pd
import pytest

from mpad.data.inputs import as_texts, as_weights
from mpad.errors import InputError


@pytest.mark.parametrize(
    "documents",
    [
        ["a", "b"],
        ("a", "b"),
        (text for text in "ab"),
        np.array(["a", "b"]),
        np.array([["a"], ["b"]], dtype=object),
        pd.Series(["a", "b"], index=[5, 9]),
    ],
)
def test_what_people_hand_in(documents):
    assert as_texts(documents) == ["a", "b"]


@pytest.mark.parametrize(
    ("documents", "said"),
    [
        ("one string", r"\[text\]"),
        (pd.DataFrame({"id": [1], "text": ["a"]}), "found a table of id, text; pass one column"),
        (np.array([["a", "b"]]), "one-dimensional"),
        (["a", None], "document 1 is not a string but NoneType"),
        (["a", float("nan")], "fill missing texts"),
        (3, "expected a list of texts, found int"),
    ],
)
def test_what_is_refused(documents, said):
    with pytest.raises(InputError, match=said):
        as_texts(documents)


def test_weights():
    assert as_weights(None, 2).tolist() == [1, 1]
    for bad in ([1], [1, -1], [0, 0], [np.nan, 1]):
        with pytest.raises(InputError, match="2 finite numbers"):
            as_weights(bad, 2)
