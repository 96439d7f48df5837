import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mpad.encoder import load_encoder, pretraining
from mpad.encoder.pretraining import PretrainConfig, pretrain
from mpad.errors import InputError

from .conftest import SMALL, WordTeacher


def test_it_imitates_its_teacher_and_says_how_well(small_encoder, raw_texts):
    card = small_encoder.card
    assert card["cosines"]["words"] > 0.6 and card["passages_trained"] == SMALL.passages
    vectors = small_encoder.encode(raw_texts[:20])
    assert vectors.shape == (20, 12) and np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_several_teachers(word_teacher, raw_texts, tmp_path):
    config = replace(SMALL, rounds=1, passages=500)
    encoder = pretrain(raw_texts[:100], ["words", "other words"], config, device="cpu", cache=tmp_path)
    assert encoder.outputs == {"words": 12, "other words": 12}
    with pytest.raises(InputError, match="two teachers are named 'words'"):
        pretrain(raw_texts[:100], ["words", "words"], config, cache=tmp_path)


def test_a_run_that_was_interrupted_resumes_to_the_same_weights(word_teacher, raw_texts, tmp_path):
    config, options = replace(SMALL, passages=1_500), {"device": "cpu", "cache": tmp_path / "cache"}
    whole = pretrain(raw_texts, ["words"], config, **options)

    def stop_after_two(report):
        if report.epoch == 3:
            raise KeyboardInterrupt

    kept = tmp_path / "run.checkpoint"
    with pytest.raises(KeyboardInterrupt):
        pretrain(raw_texts, ["words"], config, checkpoint=kept, sink=stop_after_two, **options)
    resumed = pretrain(raw_texts, ["words"], config, checkpoint=kept, resume=True, **options)
    for name, value in whole.tensors.items():
        assert np.array_equal(value, resumed.tensors[name]), name


def test_it_continues_from_an_encoder(word_teacher, small_encoder, raw_texts, tmp_path):
    more = pretrain(
        raw_texts[:50],
        ["words"],
        replace(SMALL, passages=200, rounds=1),
        start=small_encoder,
        device="cpu",
        cache=tmp_path,
    )
    assert more.vocabulary.words == small_encoder.vocabulary.words and more.card["start"] == "small"
    assert more.card["cosines"]["words"] > 0.5  # the last layer is kept, too


def test_an_encoder_has_an_output_per_teacher(word_teacher, small_encoder, raw_texts, tmp_path, monkeypatch):
    class Other(WordTeacher):
        label = "other"

    monkeypatch.setattr(pretraining, "Teacher", lambda name, *rest: (Other if name == "other" else WordTeacher)(name))
    config = replace(SMALL, passages=64, rounds=1, learning_rate=1e-6)
    both = pretrain(raw_texts[:50], ["other", "words"], config, start=small_encoder, device="cpu", cache=tmp_path)
    assert list(both.outputs) == ["other", "words"]
    assert np.allclose(both.tensors["classes.weight"][12:], small_encoder.tensors["classes.weight"], atol=1e-3)
    assert both.card["cosines"]["words"] > both.card["cosines"]["other"]


def test_bad_input_is_refused_in_a_line(word_teacher, raw_texts, tmp_path):
    with pytest.raises(InputError, match="no words"):
        pretrain(["", "  "], ["words"], SMALL, cache=tmp_path)
    with pytest.raises(InputError, match="needs a teacher"):
        pretrain(raw_texts, [], SMALL, cache=tmp_path)
    with pytest.raises(InputError, match="hidden"):
        PretrainConfig(hidden=0)
    with pytest.raises(InputError, match="contrast"):
        PretrainConfig(contrast=-1.0)
    with pytest.raises(InputError, match="a weight above 0 for each teacher: 1"):
        pretrain(raw_texts, ["words"], SMALL, teacher_weights=[1, 2], cache=tmp_path)


def test_the_command_refuses_what_cannot_be_a_teacher(tmp_path):
    texts = tmp_path / "texts.txt"
    texts.write_text("one line\nanother\n")
    command = [
        sys.executable,
        "-m",
        "mpad",
        "pretrain",
        str(texts),
        "--teacher",
        "nowhere",
        "--out",
        str(tmp_path / "e"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1_200, env=os.environ)
    assert done.returncode == 1 and "no teacher 'nowhere'" in done.stderr and len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "e").exists()


SCRIPT = """
import os, sys
sys.path.insert(0, sys.argv[1])
import numpy as np
from mpad.encoder import load_encoder, pretraining
from tests.encoder.conftest import SMALL, WORDS, WordTeacher
pretraining.Teacher, pretraining.CHUNK = WordTeacher, 64
generator = np.random.default_rng(0)
texts = [" ".join(generator.choice(WORDS, generator.integers(3, 15))) + "." for _ in range(400)]
encoder = pretraining.pretrain(texts, ["words"], SMALL, device="cpu", cache=sys.argv[2])
encoder.save(sys.argv[3] + os.environ["RANK"])
"""


def test_two_processes_train_one_encoder(tmp_path, raw_texts):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    root = Path(__file__).parent.parent.parent
    run = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(script)]
    done = subprocess.run(
        [*run, str(root), str(tmp_path / "cache"), str(tmp_path / "encoder")],
        capture_output=True,
        text=True,
        timeout=1_200,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    first, second = (load_encoder(tmp_path / f"encoder{rank}") for rank in range(2))
    assert first.card["cosines"]["words"] > 0.5
    assert np.array_equal(first.encode(raw_texts[:20]), second.encode(raw_texts[:20]))
