from dataclasses import replace

import pytest
from tests.paper.experiments.test_records import ONE

from mpad.paper.experiments import figures

pytest.importorskip("matplotlib")


def test_every_figure_is_drawn(tmp_path):
    steps = [
        replace(ONE, dataset=name, model=model, fold=fold)
        for name in ("reuters", "polarity", "imdb")
        for model in ("mpad-1mp", "mpad", "mpad-3mp", "mpad-4mp")
        for fold in range(3)
    ]
    written = figures.draw([*steps, ONE], tmp_path)
    assert [file.stem for file in written] == ["steps-of-messages", "learning-curves", "against-the-paper"]
    assert all(file.read_bytes().startswith(b"\x89PNG") for file in written)


def test_without_records_nothing_is_drawn(tmp_path):
    assert figures.draw([], tmp_path) == []
