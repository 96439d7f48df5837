"""A corpus in several files."""

import csv

import pytest

QUICK = {"hidden": 8, "vector_size": 8, "batch_size": 16, "max_epochs": 4, "random_state": 0, "device": "cpu"}
QUICK |= {"vectors": None, "learning_rate": 0.02}


@pytest.fixture
def files(tmp_path, fruit_corpus):
    """The pattern of four CSV files."""
    rows = list(zip(*fruit_corpus, strict=True))
    for k in range(4):
        with (tmp_path / f"part{k}.csv").open("w", newline="") as file:
            csv.writer(file).writerows([("text", "label"), *rows[k::4]])
    return str(tmp_path / "part*.csv")
