"""fastText's own supervised classifier (Joulin et al., 2017)."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpad.errors import InputError
from mpad.extras import require
from mpad.rivals.plain import Arrays, ProbableClassifier
from mpad.text.tokenizer import KimTokenizer

_FILE = "model.bin"


class FastText(ProbableClassifier):
    """Averaged vectors of words and pairs of words, learnt with the classes; Kim's words, as everywhere here."""

    kind = "fasttext"

    def __init__(self, epochs: int = 25, learning_rate: float = 0.5, width: int = 100, pairs: bool = True) -> None:
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.width = width
        self.pairs = pairs

    def _learn(self, texts: list[str], targets: NDArray[np.int64], n_classes: int) -> None:
        library = require("fasttext", extra="baselines")
        lines = [f"__label__{number} {_words(text)}\n" for text, number in zip(texts, targets.tolist(), strict=True)]
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "train.txt"
            file.write_text("".join(lines), encoding="utf-8")
            rate = self.learning_rate
            for _ in range(6):  # its steps may run away on one machine and not on another
                try:
                    options = {
                        "epoch": self.epochs,
                        "lr": rate,
                        "dim": self.width,
                        "wordNgrams": 2 if self.pairs else 1,
                    }
                    self.model_ = library.train_supervised(str(file), thread=1, verbose=0, **options)
                    return
                except RuntimeError as error:
                    if "NaN" not in str(error):
                        raise
                    rate /= 2
        raise InputError("fastText ran away to NaN at every learning rate tried: give a lower learning_rate")

    def _scores(self, texts: list[str]) -> NDArray[Any]:
        scores = np.full((len(texts), len(self.labels_)), -30.0)
        for row, text in enumerate(texts):
            for probability, label in self.model_.f.predict(_words(text) + "\n", -1, 0.0, "strict"):
                scores[row, int(label.removeprefix("__label__"))] = np.log(max(probability, 1e-13))
        return scores

    def _state(self, folder: Path) -> tuple[Arrays, dict[str, Any]]:
        self.model_.save_model(str(folder / _FILE))
        return {}, {}

    def _restore(self, folder: Path, arrays: Arrays, facts: dict[str, Any]) -> None:
        self.model_ = require("fasttext", extra="baselines").load_model(str(folder / _FILE))


def _words(text: str) -> str:
    return " ".join(KimTokenizer().words(text))
