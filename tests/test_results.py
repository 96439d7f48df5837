"""Nobody types a number: the committed tables are what the committed records say."""

import shutil
from pathlib import Path

import pytest

from mpad.paper.experiments import tables
from mpad.paper.experiments.protocol import PLAIN
from mpad.paper.experiments.records import Records

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results"


@pytest.fixture(scope="module")
def records():
    return Records(RESULTS / "records")


def test_tables_are_computed_from_the_records(records, tmp_path):
    shutil.copy(RESULTS / "statistics.json", tmp_path)
    shutil.copytree(RESULTS / "figures", tmp_path / "figures")
    assert tables.write(records, tmp_path).read_text() == (RESULTS / "tables.md").read_text()


def test_every_record_says_where_it_comes_from(records):
    for record in records:
        assert record.commit and record.commit != "unknown" and record.device and record.versions
        assert record.vectors is not None or record.model in {*PLAIN, "widemlp"}
        chosen = record.validation_accuracy  # of `best`, that of network and linear part together, after the last epoch
        assert chosen is None or record.preset == "best" or chosen == max(record.validation_curve)
