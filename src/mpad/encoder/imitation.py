"""The loss of pretraining: imitate the vectors of teachers, and the differences that classification needs most.

    loss = Σ_k w_k ((1 − cos(o_k, t_k)) + c (1 − cos(D_k o_k, D_k t_k))) / Σ_k w_k

t_k is the vector of teacher k, o_k the network's output for it. The rows of D_k are the directions from one sentence to
another of opposite meaning, as teacher k sees them, such as "This is good." and "This is not good.". Praise and blame,
or a negation, change a teacher's vector less than the topic does: a plain cosine hardly notices them.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from mpad.encoder.encoder import normalize
from mpad.training.task import Objective

CONTRASTS = (
    ("I loved it, it was wonderful.", "I hated it, it was terrible."),
    ("This is good.", "This is bad."),
    ("This is good.", "This is not good."),
    ("It is not bad.", "It is bad."),
    ("I like it.", "I don't like it."),
    ("A brilliant, moving film.", "A dull, disappointing film."),
    ("The product works perfectly.", "The product is broken."),
    ("I am happy.", "I am sad."),
    ("I agree with this.", "I disagree with this."),
    ("They praised the plan.", "They criticized the plan."),
    ("It was a great success.", "It was a complete failure."),
    ("Highly recommended.", "Avoid this."),
    ("It is exciting.", "It is boring."),
    ("It is funny.", "It is not funny."),
    ("He is honest.", "He is a liar."),
    ("The service was excellent.", "The service was awful."),
    ("They support peace.", "They threaten war."),
    ("This is my personal opinion.", "This is an objective fact."),
    ("The story of the film is told.", "I review the film."),
    ("What is it?", "It is what it is."),
    ("Who did this?", "Where did this happen?"),
    ("How many are there?", "What does it mean?"),
    ("It always works.", "It never works."),
    ("Everyone came.", "Nobody came."),
    ("Better than expected.", "Worse than expected."),
    ("It is cheap and useful.", "It is expensive and useless."),
    ("I am calm.", "I am angry."),
    ("A serious drama.", "A silly comedy."),
    ("Safe and healthy.", "Dangerous and sick."),
    ("They won the game.", "They lost the game."),
    ("Thank you very much!", "Shame on you!"),
    ("Beautiful.", "Ugly."),
)

Directions = tuple[Tensor, Tensor]  # (width, contrasts), and the means of projections on them: (contrasts,)


def find_directions(
    contrasts: NDArray[np.floating], passages: NDArray[np.floating], device: torch.device
) -> Directions:
    """Return a teacher's directions of `CONTRASTS`, scaled so that projections of passages have a spread of one.

    `contrasts` are its vectors of the sentences in order (2 · contrasts, width), `passages` of some passages.
    """
    contrasts, passages = contrasts.astype(np.float32), passages.astype(np.float32)
    directions = normalize(contrasts[::2] - contrasts[1::2]).T
    projected = passages @ directions
    spread = np.maximum(projected.std(0), np.finfo(np.float32).eps)
    scaled, mean = directions / spread, projected.mean(0) / spread
    return torch.from_numpy(scaled).to(device), torch.from_numpy(mean).to(device)


class Imitate(Objective):
    """The loss above. The score is the mean cosine.

    `widths` are the lengths of the teachers' vectors, `weights` the w_k (1 by default), `contrast` is c.
    """

    def __init__(
        self,
        widths: Sequence[int],
        weights: Sequence[float] | None = None,
        directions: Sequence[Directions] = (),
        contrast: float = 0.0,
    ) -> None:
        self._widths, self._weights = list(widths), list(weights or [1.0] * len(widths))
        self._directions, self._contrast = directions, contrast

    def losses(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Return the loss of each document: (…, documents)."""
        losses = []
        for k, (own, asked) in enumerate(self._parts(logits, targets)):
            loss = 1 - functional.cosine_similarity(own, asked, dim=-1)
            if self._contrast:
                scaled, mean = self._directions[k]
                seen, expected = functional.normalize(own, dim=-1) @ scaled - mean, asked @ scaled - mean
                loss = loss + self._contrast * (1 - functional.cosine_similarity(seen, expected, dim=-1))
            losses.append(self._weights[k] * loss)
        return torch.stack(losses).sum(0) / sum(self._weights)

    def scores(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Return the mean cosine: (…, documents)."""
        return torch.stack(
            [functional.cosine_similarity(own, asked, dim=-1) for own, asked in self._parts(logits, targets)]
        ).mean(0)

    def _parts(self, logits: Tensor, targets: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Return output and target for each teacher."""
        return list(zip(logits.split(self._widths, -1), targets.float().split(self._widths, -1), strict=True))
