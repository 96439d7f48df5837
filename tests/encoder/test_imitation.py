import numpy as np
import torch

from mpad.encoder.imitation import CONTRASTS, Imitate, find_directions


def _unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def test_the_loss_without_contrast_is_the_weighted_mean_of_one_minus_cosine():
    generator = np.random.default_rng(0)
    own, asked = (torch.from_numpy(generator.standard_normal((5, 7)).astype(np.float32)) for _ in range(2))
    cosines = [torch.cosine_similarity(own[:, part], asked[:, part]) for part in (slice(0, 4), slice(4, 7))]
    loss = Imitate([4, 3], [2.0, 1.0]).losses(own, asked)
    assert torch.allclose(loss, (2 * (1 - cosines[0]) + 1 - cosines[1]) / 3, atol=1e-6)
    assert torch.allclose(Imitate([4, 3]).scores(own, asked), (cosines[0] + cosines[1]) / 2, atol=1e-6)


def test_contrast_asks_for_the_directions_of_opposites_more_than_for_others():
    generator, width = np.random.default_rng(1), 64
    sentences = _unit(generator.standard_normal((2 * len(CONTRASTS), width)))
    passages = _unit(generator.standard_normal((500, width)))
    scaled, mean = find_directions(sentences, passages, torch.device("cpu"))
    projected = torch.from_numpy(passages.astype(np.float32)) @ scaled - mean
    assert torch.allclose(projected.mean(0), torch.zeros(len(CONTRASTS)), atol=1e-4)
    assert torch.allclose(projected.std(0), torch.ones(len(CONTRASTS)), atol=1e-2)

    asked = torch.from_numpy(passages[:50].astype(np.float32))
    along = torch.linalg.qr(scaled)[0]  # the directions, without their scale
    noise = torch.from_numpy(generator.standard_normal((50, width)).astype(np.float32))
    inside, outside = noise @ along @ along.T, noise - noise @ along @ along.T
    objective = Imitate([width], None, [(scaled, mean)], contrast=1.0)

    def loss(error):
        wrong = asked + 0.5 * error / error.norm(dim=1, keepdim=True)
        return float(objective.losses(wrong, asked).mean())

    assert loss(inside) > 1.2 * loss(outside)
    assert float(objective.losses(3 * asked, asked).mean()) < 1e-5  # the length does not count
