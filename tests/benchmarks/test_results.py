"""What benchmarks write says what was measured, on what, and how far it scatters."""

import json
from dataclasses import asdict, replace

import numpy as np
import pytest
from benchmarks.corpus import short_documents
from benchmarks.speed import answering, preparing
from benchmarks.speed.measure import Timing, ratios

from benchmarks import results


def test_the_committed_page_is_what_the_committed_records_say():
    files = {kind: results.HERE / f"{kind}.json" for kind in results.KINDS}
    records = {kind: json.loads(file.read_text(encoding="utf-8")) for kind, file in files.items() if file.is_file()}
    assert (results.HERE / "RESULTS.md").read_text(encoding="utf-8") == results.markdown(records)


def test_parts_of_different_commits_are_told():
    record = {"machine": {"commit": "abc"}, "sections": {}}
    assert "All parts are of one commit" in results.markdown({"cpu": record, "gpu": record})
    other = {"machine": {"commit": "def"}, "sections": {}}
    assert "**The parts below are of different commits**" in results.markdown({"cpu": record, "gpu": other})


@pytest.mark.parametrize(("changed", "refused"), [(" M benchmarks/cpu.json", False), (" M src/mpad/cli/fit.py", True)])
def test_a_tree_that_no_commit_holds_is_refused(monkeypatch, changed, refused):
    class Done:
        stdout = f"{changed}\n M benchmarks/RESULTS.md\n"

    monkeypatch.setattr(results, "commit", lambda: "abc+")
    monkeypatch.setattr(results.subprocess, "run", lambda *arguments, **options: Done)
    if refused:
        with pytest.raises(SystemExit, match="commit or stash"):
            results.check_clean()
    else:
        results.check_clean()
        assert results.measured_commit() == "abc"


def test_a_ratio_is_the_median_of_the_rounds_and_says_their_spread():
    assert ratios([2.0, 6.0, 9.0], [1.0, 2.0, 1.0]) == (3.0, "2.00 to 9.00")


def test_both_sides_of_text_to_graphs_are_cut_into_batches(monkeypatch):
    taken = []
    original = preparing.CorpusTensors.take
    monkeypatch.setattr(
        preparing.CorpusTensors, "take", lambda self, rows: taken.append(len(rows)) or original(self, rows)
    )
    row = preparing._row(short_documents(150))
    assert taken[:2] == [128, 22] and row.text == "made-up" and " to " in row.spread


def test_accuracy_stands_beside_speed():
    corpus = replace(short_documents(10), name="some")
    timing = {
        name: Timing(s, s, [s] * 5, [s] * 5)
        for name, s in (("ours", 2.0), ("fastText", 1.0), ("ours on all cores", 1.0))
    }
    alone, beside, whole = answering._rates(corpus, timing, {"ours": 0.8, "fastText": 0.7}, 2)
    assert "80.0" in alone.note and "70.0" in beside.note and "80.0" in beside.note
    assert (beside.ratio, whole.ratio) == (0.5, 1.0)


def test_timed_texts_are_new_to_the_model(tmp_path, monkeypatch):
    corpus = short_documents(40)
    answering.save_random_model(corpus.texts[:20], tmp_path / "model")
    asked = []
    answer = answering.runtime.Pipeline.predict_proba

    def listened(model, texts):
        asked.append((id(model), texts[0]))
        return answer(model, texts)

    monkeypatch.setattr(answering.runtime.Pipeline, "predict_proba", listened)
    piece = answering._fresh(tmp_path / "model", replace(corpus, texts=corpus.texts[:20]), corpus.texts[20:])
    for _ in range(5):
        assert np.isfinite(piece()).all()
    timed = [model for model, text in asked if text == corpus.texts[20]]
    assert len(timed) == len(set(timed)) == 5


@pytest.mark.parametrize(
    ("target", "ratio", "missed"),
    [
        ("7", 6.98, True),
        ("7", 7.0, False),
        ("at least 0.33", 0.29, True),
        ("at most 3 (lower is better)", 3.9, True),
        ("at most 3 (lower is better)", 2.9, False),
        ("under 1 s", 0.1, False),
        ("15", None, False),
    ],
)
def test_targets_that_were_missed_are_marked(target, ratio, missed):
    row = {**asdict(results.Row("a step", "1 s", target=target)), "ratio": ratio}
    said = results.markdown({"cpu": {"machine": {"commit": "c"}, "sections": {"Steps": [row]}}})
    assert ("missed" in said) == missed
