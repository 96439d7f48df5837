from mpad._training.progress import EpochReport


def test_one_aligned_line():
    report = EpochReport(7, 200, 0.51234, 0.4, 0.87654, 1.239, is_best=True)
    assert str(report) == "epoch   7/200  loss 0.5123  validation 0.8765  1.24 s *"
