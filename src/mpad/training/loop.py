"""Training as a ladder of short steps: train → run_epoch → train_step."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from mpad.errors import InputError
from mpad.graph.batch import CorpusTensors, GraphBatch
from mpad.models.mpad import MPAD
from mpad.training.adam import FlatAdam
from mpad.training.examples import Examples
from mpad.training.progress import EpochReport, Sink, silent
from mpad.training.stopping import BestWeights

_EVALUATION_NODES = 16_384  # words in one batch of evaluation: more spill out of the cache


@dataclass(frozen=True)
class TrainingConfig:
    """How to train: Adam on cross-entropy, the best epoch kept.

    schedule: "constant", or "halving" the rate every 50 epochs, as the authors' code does.
    patience: epochs without a better validation accuracy before stopping; None: never.
    """

    max_epochs: int = 200
    patience: int | None = 20
    batch_size: int = 128
    learning_rate: float = 0.001
    schedule: Literal["constant", "halving"] = "constant"
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("max_epochs", "batch_size"):
            value = getattr(self, name)
            if not isinstance(value, (int, np.integer)) or value < 1:
                raise InputError(f"{name} must be a whole number, at least 1, not {value!r}")
        if not self.learning_rate > 0:
            raise InputError(f"learning_rate must be above 0, not {self.learning_rate}")
        if self.patience is not None and self.patience < 1:
            raise InputError(f"patience must be at least 1 epoch, or None for no early stopping, not {self.patience}")


@dataclass(frozen=True)
class History:
    """How training went."""

    reports: list[EpochReport]
    best_epoch: int
    interrupted: bool


def train(
    model: MPAD, examples: Examples, validation: Examples | None, config: TrainingConfig, sink: Sink = silent
) -> History:
    """Train, and leave the model with the weights of its best epoch.

    Ctrl-C ends training early; the best weights so far are kept all the same. The caller's random generators are
    left as they were.
    """
    best = BestWeights(model, config.patience)
    optimiser = FlatAdam(
        (parameter for parameter in model.parameters() if parameter.requires_grad), config.learning_rate
    )
    reports: list[EpochReport] = []
    interrupted = False
    with torch.random.fork_rng(devices=_cuda_devices(examples)):
        torch.manual_seed(config.seed)
        try:
            for report in _epochs(model, optimiser, examples, validation, config, best):
                reports.append(report)
                sink(report)
                if best.out_of_patience:
                    break
        except KeyboardInterrupt:
            interrupted = True
        finally:
            optimiser.release()
    best.restore()
    model.eval()
    return History(reports, best.epoch, interrupted)


def _cuda_devices(examples: Examples) -> list[torch.device]:
    device = examples.documents.device
    return [device] if device.type == "cuda" else []


def _epochs(
    model: MPAD,
    optimiser: FlatAdam,
    examples: Examples,
    validation: Examples | None,
    config: TrainingConfig,
    best: BestWeights,
) -> Iterator[EpochReport]:
    generator = np.random.default_rng(config.seed)
    for epoch in range(1, config.max_epochs + 1):
        start = time.perf_counter()
        if config.schedule == "halving" and epoch % 50 == 1 and epoch > 1:
            optimiser.scale_learning_rate(0.5)
        train_loss = run_epoch(model, optimiser, examples, config.batch_size, generator)
        loss, accuracy = evaluate(model, examples if validation is None else validation)
        is_best = best.offer(epoch, accuracy, loss)
        seconds = time.perf_counter() - start
        yield EpochReport(epoch, config.max_epochs, train_loss, loss, accuracy, seconds, is_best)


def run_epoch(
    model: MPAD,
    optimiser: FlatAdam,
    examples: Examples,
    batch_size: int,
    generator: np.random.Generator,
) -> float:
    """Pass once over the examples in a fresh random order; give the mean loss."""
    model.train()
    total = torch.zeros((), device=examples.documents.device)
    for rows in _shuffled_batches(len(examples), batch_size, generator):
        on_device = torch.from_numpy(rows).to(examples.documents.device)
        total += train_step(model, optimiser, *examples.take(on_device)) * len(rows)
    return float(total) / len(examples)


def _shuffled_batches(n: int, batch_size: int, generator: np.random.Generator) -> list[NDArray[np.int64]]:
    order = generator.permutation(n)
    cuts = np.arange(batch_size, n, batch_size)
    if len(cuts) and n - cuts[-1] == 1:  # a last batch of one has no variance: it joins the one before
        cuts = cuts[:-1]
    return np.split(order, cuts)


def train_step(model: MPAD, optimiser: FlatAdam, batch: GraphBatch, targets: Tensor, weights: Tensor) -> Tensor:
    """Learn from one batch; give its loss."""
    optimiser.zero_grad()
    with _mixed_precision(targets):
        logits = model(batch).logits
    loss = weighted_loss(logits, targets, weights)
    loss.backward()
    optimiser.step()
    return loss.detach()


def _mixed_precision(on: Tensor) -> torch.autocast:
    """On a GPU, products run in bfloat16 (float32's range: no loss scaling); sums and softmax stay float32."""
    return torch.autocast(on.device.type, torch.bfloat16, enabled=on.device.type == "cuda")


def weighted_loss(logits: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
    """Weighted mean of the cross-entropy: softmax for class numbers, a sigmoid a column for indicators."""
    if targets.ndim == 2:
        each = functional.binary_cross_entropy_with_logits(logits, targets, reduction="none").mean(1)
    else:
        each = functional.cross_entropy(logits, targets, reduction="none")
    return (each * weights).sum() / weights.sum().clamp(min=torch.finfo(weights.dtype).tiny)


@torch.no_grad()
def evaluate(model: MPAD, examples: Examples) -> tuple[float, float]:
    """Loss and accuracy; of many labels a document, accuracy is the share of right cells."""
    model.eval()
    logits = torch.cat([model(batch).logits for batch in batches(examples.corpus, examples.documents)])
    loss = weighted_loss(logits, examples.targets, examples.weights)
    if examples.targets.ndim == 2:
        right = ((logits > 0) == (examples.targets > 0.5)).float().mean(1)
    else:
        right = (logits.argmax(1) == examples.targets).float()
    return float(loss), float(right.mean())


def batches(corpus: CorpusTensors, documents: Tensor) -> Iterator[GraphBatch]:
    """Cut documents, in order, into batches of about as many words each."""
    sizes = corpus.document_sizes(documents).cpu().numpy()
    number = np.cumsum(sizes) // _EVALUATION_NODES
    for part in np.split(np.arange(len(sizes)), np.flatnonzero(np.diff(number)) + 1):
        yield corpus.take(documents[torch.from_numpy(part).to(documents.device)])
