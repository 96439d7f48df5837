"""Compare an exported model with its original: size, speed and quality on labeled documents."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import f1_score

from mpad import inference
from mpad.data.labels import Labels, as_lists
from mpad.export.onnx_folder import MODEL, onnx_inputs
from mpad.extras import require
from mpad.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Checked:
    """Scores of a model on some documents."""

    megabytes: float  # of its folder
    speed: float  # documents per second, from text, after a first pass
    measure: str  # what the quality is
    quality: float
    probabilities: NDArray[np.float64]  # (documents, classes)
    predicted: NDArray[Any]

    def differs_from(self, other: "Checked") -> tuple[float, int]:
        """Return the largest difference of a probability, and the number of documents with another prediction."""
        differs = (self.predicted != other.predicted).reshape(len(self.predicted), -1).any(axis=1)
        return float(np.abs(self.probabilities - other.probabilities).max(initial=0)), int(differs.sum())


def check_model(
    folder: Path, texts: Sequence[str], labels: Sequence[Any], tokenizer: str | Tokenizer | None = None
) -> Checked:
    """Check a model folder with `mpad.inference`."""
    pipeline = inference.load(folder, tokenizer)
    return _checked(folder, pipeline.labels, pipeline.logits, texts, labels)


def check_onnx(
    folder: Path, out: Path, texts: Sequence[str], labels: Sequence[Any], tokenizer: str | Tokenizer | None = None
) -> Checked:
    """Check an exported model: mpad reads the text, ONNX Runtime computes the predictions."""
    pipeline = inference.load(folder, tokenizer)
    session = require("onnxruntime", extra="onnx").InferenceSession(str(out / MODEL))
    names = [one.name for one in session.get_inputs()]

    def logits(documents: Sequence[str]) -> NDArray[np.float32]:
        arrays = [onnx_inputs(packed) for packed in pipeline.packs(documents)]
        return np.concatenate([session.run(["logits"], {name: one[name] for name in names})[0] for one in arrays])

    return _checked(out, pipeline.labels, logits, texts, labels)


def _checked(
    folder: Path,
    labels: Labels,
    compute: Callable[[Sequence[str]], NDArray[np.float32]],
    texts: Sequence[str],
    truth: Sequence[Any],
) -> Checked:
    compute(texts)
    start = perf_counter()
    logits = compute(texts)
    seconds = perf_counter() - start
    size = sum(file.stat().st_size for file in folder.iterdir()) / 1e6
    predicted = labels.decide(logits)
    if labels.multilabel:
        expected = labels.as_predicted(as_lists(truth))
        measure, quality = "micro-F1", float(f1_score(expected, predicted, average="micro", zero_division=0))
    else:
        measure = "accuracy"
        quality = float(np.mean([str(one) == str(two) for one, two in zip(predicted.tolist(), truth, strict=True)]))
    return Checked(round(size, 3), len(texts) / seconds, measure, quality, labels.probabilities(logits), predicted)
