"""Training that was cut off ends as it would have ended."""

import errno
import json
import os
import signal
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from mpad import MPADClassifier
from mpad.errors import CheckpointError, StoreError
from mpad.files import atomic
from mpad.paper import zoo

QUICK = {"vector_size": 16, "max_epochs": 6, "random_state": 0, "device": "cpu", "learning_rate": 0.01}


class Cut(Exception):
    pass


def cut_after(epoch):
    def sink(report):
        if report.epoch == epoch + 1:  # before the checkpoint of this one is written
            raise Cut

    return sink


def weights(classifier):
    return classifier.model_.network.state_dict()


def same(one, other):
    assert one.keys() == other.keys()
    return all(torch.equal(one[name], other[name]) for name in one)


def settings():
    for variant in ("mpad", "clique"):
        for preset in ("best", "paper", "authors"):
            make = partial(MPADClassifier, variant, preset=preset, hidden=16, **QUICK)
            yield pytest.param(make, id=f"{variant}-{preset}")
    yield pytest.param(lambda: zoo.make("cnn", **QUICK), id="cnn")
    yield pytest.param(lambda: zoo.make("hn-att", **QUICK), id="hn-att")


@pytest.mark.parametrize("make", list(settings()))
@pytest.mark.parametrize("kernels", ["on", "off"])
def test_it_goes_on_to_the_very_same_weights(make, kernels, fruit_corpus, tmp_path, monkeypatch):
    monkeypatch.setenv("MPAD_KERNELS", kernels)
    _check_same_weights(make, fruit_corpus, tmp_path)


def _check_same_weights(make, fruit_corpus, tmp_path):
    whole = make().fit(*fruit_corpus)
    file = tmp_path / "c"
    for epoch in (1, 3, 4):
        with pytest.raises(Cut):
            make().fit(*fruit_corpus, sink=cut_after(epoch), checkpoint=file, resume=True)
    seen = []
    resumed = make().fit(*fruit_corpus, sink=seen.append, checkpoint=file, resume=True)
    assert [report.epoch for report in seen] == [5, 6]
    assert same(weights(whole), weights(resumed))
    assert resumed.best_epoch_ == whole.best_epoch_ and resumed.n_iter_ == 6
    assert np.array_equal(resumed.predict_proba(fruit_corpus[0]), whole.predict_proba(fruit_corpus[0]))


def test_a_training_that_is_done_is_done(fruit_corpus, tmp_path):
    first = MPADClassifier(preset="paper", hidden=16, **QUICK).fit(*fruit_corpus, checkpoint=tmp_path / "c")
    seen = []
    again = MPADClassifier(preset="paper", hidden=16, **QUICK).fit(
        *fruit_corpus, sink=seen.append, checkpoint=tmp_path / "c", resume=True
    )
    assert not seen and same(weights(first), weights(again)) and again.best_epoch_ == first.best_epoch_
    more = MPADClassifier(preset="paper", hidden=16, **{**QUICK, "max_epochs": 8})
    more.fit(*fruit_corpus, sink=seen.append, checkpoint=tmp_path / "c", resume=True)
    whole = MPADClassifier(preset="paper", hidden=16, **{**QUICK, "max_epochs": 8}).fit(*fruit_corpus)
    assert [report.epoch for report in seen] == [7, 8] and same(weights(whole), weights(more))


def test_patience_goes_on_too(fruit_corpus, tmp_path):
    options = {**QUICK, "max_epochs": 60, "patience": 4}
    whole = MPADClassifier(hidden=16, **options).fit(*fruit_corpus)
    assert whole.n_iter_ < 60
    with pytest.raises(Cut):
        MPADClassifier(hidden=16, **options).fit(
            *fruit_corpus, sink=cut_after(whole.n_iter_ - 2), checkpoint=tmp_path / "c"
        )
    resumed = MPADClassifier(hidden=16, **options).fit(*fruit_corpus, checkpoint=tmp_path / "c", resume=True)
    assert resumed.n_iter_ == whole.n_iter_ and same(weights(whole), weights(resumed))


def test_a_seed_that_nobody_chose_is_kept(fruit_corpus, tmp_path):
    options = {**QUICK, "random_state": None}
    with pytest.raises(Cut):
        MPADClassifier(hidden=16, **options).fit(*fruit_corpus, sink=cut_after(2), checkpoint=tmp_path / "c")
    resumed = [
        MPADClassifier(hidden=16, **options).fit(*fruit_corpus, checkpoint=copied, resume=True)
        for copied in [_copy(tmp_path / "c", tmp_path / name) for name in "xy"]
    ]
    assert same(weights(resumed[0]), weights(resumed[1]))


def _copy(source, target):
    target.write_bytes(source.read_bytes())
    return target


def test_other_data_or_settings_are_refused(fruit_corpus, tmp_path):
    texts, labels = fruit_corpus
    file = tmp_path / "c"
    with pytest.raises(Cut):
        MPADClassifier(hidden=16, **QUICK).fit(texts, labels, sink=cut_after(1), checkpoint=file)
    before = file.read_bytes()
    other = {
        "settings": (MPADClassifier(hidden=32, **QUICK), texts, labels),
        "seed": (MPADClassifier(hidden=16, **{**QUICK, "random_state": 1}), texts, labels),
        "documents": (MPADClassifier(hidden=16, **QUICK), texts[1:], labels[1:]),
        "labels": (MPADClassifier(hidden=16, **QUICK), texts, [*labels[:-2], labels[-1], labels[-2]]),
        "network": (zoo.make("cnn", **QUICK), texts, labels),
    }
    for model, *data in other.values():
        with pytest.raises(CheckpointError, match="of other data, other settings or another version"):
            model.fit(*data, checkpoint=file, resume=True)
        with pytest.raises(CheckpointError, match=r"a training was interrupted; resume it \(resume=True in Python"):
            model.fit(*data, checkpoint=file)
    assert file.read_bytes() == before


def test_what_a_name_stands_for_counts(fruit_corpus, tmp_path):
    """Another tokenizer or other vectors under the same name are other data."""
    options = {**QUICK, "hidden": 16}
    vectors = tmp_path / "v.txt"
    for first, second in (
        ({"tokenizer": str.split}, {"tokenizer": lambda text: text.split()[::-1]}),
        ({"vectors": str(vectors)}, {"vectors": str(vectors)}),
    ):
        file = tmp_path / f"c{len(list(tmp_path.iterdir()))}"
        vectors.write_text("apple 1 2\nsaw 3 4\n")
        with pytest.raises(Cut):
            MPADClassifier(**options, **first).fit(*fruit_corpus, sink=cut_after(1), checkpoint=file)
        vectors.write_text("apple 5 6\nsaw 3 4\n")
        with pytest.raises(CheckpointError, match="of other data"):
            MPADClassifier(**options, **second).fit(*fruit_corpus, checkpoint=file, resume=True)


def test_a_pipe_is_no_checkpoint(fruit_corpus, tmp_path):
    os.mkfifo(tmp_path / "c")
    with pytest.raises(CheckpointError, match="no regular file"):
        MPADClassifier(hidden=16, **QUICK).fit(*fruit_corpus, checkpoint=tmp_path / "c", resume=True)


@pytest.mark.parametrize("content", [b"", b"a letter of mine", b"\x00" * 100])
def test_a_file_of_somebody_else_stays(fruit_corpus, tmp_path, content):
    (tmp_path / "c").write_bytes(content)
    for resume in (False, True):
        with pytest.raises(CheckpointError, match="not a checkpoint that can be read"):
            MPADClassifier(hidden=16, **QUICK).fit(*fruit_corpus, checkpoint=tmp_path / "c", resume=resume)
    assert (tmp_path / "c").read_bytes() == content


def test_a_full_disk_leaves_the_last_good_one(fruit_corpus, tmp_path, monkeypatch):
    real, calls = os.fsync, []

    def full(handle):
        calls.append(handle)
        if len(calls) > 4:  # a file and its folder each epoch: the third one fails
            raise OSError(errno.ENOSPC, "No space left on device")
        real(handle)

    monkeypatch.setattr(atomic.os, "fsync", full)
    with pytest.raises(StoreError, match="the disk is full; the checkpoint of epoch 2 stays: make room and resume"):
        MPADClassifier(hidden=16, **QUICK).fit(*fruit_corpus, checkpoint=tmp_path / "c")
    monkeypatch.undo()
    resumed = MPADClassifier(hidden=16, **QUICK).fit(*fruit_corpus, checkpoint=tmp_path / "c", resume=True)
    assert same(weights(resumed), weights(MPADClassifier(hidden=16, **QUICK).fit(*fruit_corpus)))


def test_the_command_line_survives_sigkill(fruit_corpus, tmp_path):
    """`make security` does this twenty times, at random moments."""
    data = tmp_path / "d.csv"
    data.write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in zip(*fruit_corpus, strict=True)))

    def fit(out, *more):
        command = [sys.executable, "-c", "from mpad.cli.main import main; main()", "fit", str(data), "--out", str(out)]
        options = ["--hidden", "16", "--max-epochs", "40", "--patience", "40", "--device", "cpu", *more]
        return subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True)

    with fit(tmp_path / "whole") as whole:
        whole.stderr.read()
    assert whole.returncode == 0 and not (tmp_path / "whole.checkpoint").exists()
    for epochs in (3, 5):
        with fit(tmp_path / "cut", "--resume") as process:
            for line in process.stderr:
                if line.startswith("epoch"):
                    epochs -= 1
                    if not epochs:
                        process.send_signal(signal.SIGKILL)
        assert process.returncode == -signal.SIGKILL and not (tmp_path / "cut").exists()
    with fit(tmp_path / "cut", "--resume") as process:
        said = process.stderr.read()
    assert process.returncode == 0 and "epoch  40/" in said and "epoch   1/" not in said
    files = [tmp_path / name / "model.safetensors" for name in ("whole", "cut")]
    assert same(load_file(files[0]), load_file(files[1]))
    cards = [json.loads((file.parent / "config.json").read_text())["card"] for file in files]
    assert cards[0]["data"] == "d.csv" and {**cards[0], "trained": 0} == {**cards[1], "trained": 0}


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("name", ["mpad", "mpad-clique", "cnn"])
def test_it_goes_on_on_a_gpu_too(name, fruit_corpus, tmp_path):
    """Sums run in another order there: the curve goes on as it would have, not to the last bit."""
    # At a low rate: a high one makes another curve of the last digits, resumed or not.
    options = {**QUICK, "device": "cuda", "patience": None, "max_epochs": 8, "batch_size": 128, "learning_rate": 0.001}
    whole = zoo.make(name, **options).fit(*fruit_corpus)
    with pytest.raises(Cut):
        zoo.make(name, **options).fit(*fruit_corpus, sink=cut_after(4), checkpoint=tmp_path / "c")
    resumed = zoo.make(name, **options).fit(*fruit_corpus, checkpoint=tmp_path / "c", resume=True)
    curves = [[report.train_loss for report in one.history_] for one in (whole, resumed)]
    assert len(curves[1]) == 8 and np.allclose(*curves, rtol=0.05, atol=0.02)
    loaded = load_file(tmp_path / "c")
    steps = [value for key, value in loaded.items() if key == "steps"]
    assert steps and all(float(step.flatten()[0]) == 8 for step in steps)  # one batch an epoch


def changed(path, change):
    """Rewrite a checkpoint's metadata and tensors."""
    with safe_open(path, framework="pt") as file:
        facts, tensors = json.loads(file.metadata()["mpad_checkpoint"]), {k: file.get_tensor(k) for k in file.keys()}  # noqa: SIM118
    change(facts, tensors)
    save_file(tensors, path, {"mpad_checkpoint": json.dumps(facts)})


def _fill(name, value):
    def change(facts, tensors):
        own = next(tensor for known, tensor in sorted(tensors.items()) if known.endswith(name))
        own.fill_(value)

    return change


def _bytes(facts, tensors):
    for tensor in tensors.values():
        ones = torch.full((tensor.numel() * tensor.element_size(),), 255, dtype=torch.uint8)
        tensor.copy_(ones.view(tensor.dtype).view(tensor.shape))


@pytest.mark.parametrize(
    "change",
    [
        lambda facts, tensors: facts.update(epoch=1_000_000_000),
        lambda facts, tensors: facts.update(epoch=1.0),
        lambda facts, tensors: facts.update(epoch=-1),
        lambda facts, tensors: facts.update(seed=-1),
        lambda facts, tensors: facts.update(seed="0"),
        lambda facts, tensors: facts.update(fingerprint=None),
        lambda facts, tensors: facts.update(extra=1),
        lambda facts, tensors: facts["judge"].update(epoch=99),
        lambda facts, tensors: facts["judge"].update(waited=-1),
        lambda facts, tensors: facts["judge"].update(score=[1.0]),
        lambda facts, tensors: facts["judge"].update(score=[float("nan"), 0.0]),
        lambda facts, tensors: facts["reports"][0].update(epoch=1_000_000_000),
        _bytes,
        _fill("steps", -1),
        _fill("weight", float("nan")),
        _fill("weight", 3e38),
        _fill(".v", -1.0),
    ],
)  # fmt: skip
def test_no_value_of_a_checkpoint_is_trusted(change, fruit_corpus, tmp_path):
    path = tmp_path / "c"
    with pytest.raises(Cut):
        MPADClassifier(hidden=8, **QUICK).fit(*fruit_corpus, sink=cut_after(2), checkpoint=path)
    changed(path, change)
    with pytest.raises(CheckpointError):
        MPADClassifier(hidden=8, **QUICK).fit(*fruit_corpus, checkpoint=path, resume=True)
