"""Dropout that is cheap on a CPU."""

import torch
from torch import Tensor, nn


class Dropout(nn.Module):
    """y = x ⊙ mask / (1 − p), the mask 0 with probability p; any shape.

    torch draws a float for every element on one thread, which costs more than the products around it. Here one
    random 64-bit integer serves eight elements, so on a CPU p is rounded to a multiple of 1/256.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        """Drop elements while training; at prediction give x itself."""
        if not self.training or self.p == 0.0:
            return x
        if x.device.type != "cpu":
            return nn.functional.dropout(x, self.p)
        dropped = min(round(self.p * 256), 255)
        eights = torch.randint(-(1 << 63), (1 << 63) - 1, (-(-x.numel() // 8),), dtype=torch.int64)
        kept = eights.view(torch.uint8)[: x.numel()].view(x.shape) >= dropped
        return (x * kept).mul_(256 / (256 - dropped))

    def extra_repr(self) -> str:
        """Show p."""
        return f"p={self.p}"
