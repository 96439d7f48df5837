import torch

from mpad.training.stopping import BestWeights


def test_best_by_accuracy_then_loss():
    model = torch.nn.Linear(1, 1, bias=False)

    def at(value):
        with torch.no_grad():
            model.weight.fill_(value)

    best = BestWeights(model, patience=3)
    for epoch, (accuracy, loss, value, is_best) in enumerate(
        [(0.5, 1.0, 1, True), (0.6, 1.0, 2, True), (0.6, 0.9, 3, True), (0.6, 0.95, 4, False)], start=1
    ):
        at(value)
        assert best.offer(epoch, accuracy, loss) == is_best
    assert not best.out_of_patience
    best.offer(5, 0.1, 0.1)
    assert best.out_of_patience  # three epochs without a better accuracy
    best.restore()
    assert best.epoch == 3 and model.weight.item() == 3
