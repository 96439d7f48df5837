"""Batch normalisation that takes a batch of one."""

import torch
from torch import Tensor, nn


class BatchNorm(nn.BatchNorm1d):
    """y = (x − mean) / √(var + ε) · γ + β over the rows: (rows, width) → (rows, width).

    While training, mean and variance are the batch's; a batch of one row has no variance, and is normalised by
    the running averages, as at prediction.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Normalise the columns."""
        if self.training and input.shape[0] < 2:
            return torch.nn.functional.batch_norm(
                input, self.running_mean, self.running_var, self.weight, self.bias, False, 0.0, self.eps
            )
        return super().forward(input)
