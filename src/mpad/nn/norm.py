"""Batch normalisation that takes a batch of one, several models at once, and rows that do not count."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from mpad.nn import kernels
from mpad.nn.compiled.norm import CompiledNorm, normalises


class BatchNorm(nn.BatchNorm1d):
    """y = (x − mean) / √(var + ε) · γ + β over the rows: ([models,] rows, width) → the same.

    While training, mean and variance are the batch's; a batch of one row has no variance, and is normalised by
    the running averages, as at prediction. Stacked models have γ, β and averages of shape (models, width), and
    `counted` (models, rows, 1) is 1 for rows that count and 0 for padding.
    """

    def forward(
        self, input: Tensor, counted: Tensor | None = None, relu: bool = False, before: Tensor | None = None
    ) -> Tensor:
        """Normalise the columns; with `relu`, give the ReLU of that.

        `before` is a bias that the input still lacks. It moves the mean and nothing else, so it is never added, and
        has no gradient: only the running mean knows of it.
        """
        if self.training and input.ndim == 3 and counted is not None and kernels.run_on(input):
            from mpad.nn.kernels.norm import Norm

            learnt, kept = (self.weight, self.bias), (self.running_mean, self.running_var, self.momentum)
            return Norm.apply(input, *learnt, counted, *kept, self.eps, relu, before)  # type: ignore[no-untyped-call]
        assert self.running_mean is not None and self.running_var is not None and self.momentum is not None
        if self.training and normalises(input, self.weight):
            running = self.running_mean, self.running_var
            arguments = running, self.momentum, self.eps, relu, None if before is None else before.detach()
            return CompiledNorm.apply(input, self.weight, self.bias, *arguments)  # type: ignore[no-untyped-call]
        mean = self.running_mean if before is None else self.running_mean - before.detach()  # as the input has it
        normal = self._plain(input, mean) if input.ndim == 2 else self._stacked(input, counted, mean)
        if before is not None and self.training:
            with torch.no_grad():
                self.running_mean.copy_(mean).add_(before)
        return functional.relu(normal) if relu else normal

    def _plain(self, input: Tensor, mean: Tensor) -> Tensor:
        by_batch = self.training and input.shape[0] >= 2
        step = 0.0 if self.momentum is None or not by_batch else self.momentum
        return functional.batch_norm(input, mean, self.running_var, self.weight, self.bias, by_batch, step, self.eps)

    def _stacked(self, x: Tensor, counted: Tensor | None, mean: Tensor) -> Tensor:
        assert self.running_var is not None and self.momentum is not None
        var = self.running_var
        if self.training:
            if counted is None:
                counted = x.new_ones((*x.shape[:2], 1))
            n = counted.sum(1).to(x.dtype)  # (models, 1)
            share = counted / n.clamp(min=1).unsqueeze(1)
            batch_mean = (x * share).sum(1)
            batch_var = ((x - batch_mean.unsqueeze(1)).square() * share).sum(1)
            enough = n >= 2
            with torch.no_grad():
                step = self.momentum * enough.to(x.dtype)
                unbiased = batch_var * (n / (n - 1).clamp(min=1))
                kept = mean.clone(), var.clone()
                mean.lerp_(batch_mean.detach(), step.expand_as(mean))
                var.lerp_(unbiased, step.expand_as(var))
            mean, var = torch.where(enough, batch_mean, kept[0]), torch.where(enough, batch_var, kept[1])
        scale = self.weight * torch.rsqrt(var + self.eps)
        return torch.addcmul((self.bias - mean * scale).unsqueeze(1), x, scale.unsqueeze(1))
