import pytest

from mpad.training.progress import EpochReport, epoch_bar

REPORT = EpochReport(7, 200, 0.51234, 0.4, 0.87654, 1.239, is_best=True)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({}, "epoch   7/200  loss 0.5123  held-out accuracy 0.8765  1.24 s  best so far"),
        ({"mark_best": False}, "epoch   7/200  loss 0.5123  held-out accuracy 0.8765  1.24 s"),
        ({"show_accuracy": False}, "epoch   7/200  loss 0.5123  1.24 s"),
    ],
)
def test_a_line_per_epoch(capsys, options, line):
    with epoch_bar(1, **options) as sink:
        sink(REPORT)
    assert capsys.readouterr().err == line + "\n"
