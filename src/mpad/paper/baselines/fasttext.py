"""fastText's own supervised classifier (Joulin et al., 2017)."""

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpad.errors import InputError, StoreError
from mpad.extras import require
from mpad.files.tensors import Arrays
from mpad.paper.baselines.base import ProbableClassifier
from mpad.storage.model_folder import ModelFiles
from mpad.training.task import hold_out

_FILE = "model.bin"
_TRUST = "MPAD_TRUST_FASTTEXT"
_RATES, _EPOCHS = (0.2, 1.0), (25, 100)


@dataclass(eq=False, repr=False)
class FastText(ProbableClassifier):
    """Averaged vectors of words and pairs of words, learnt with the classes; Kim's words, as everywhere here.

    `learning_rate` or `epochs` None: chosen among a few by accuracy on a tenth of the training documents, and learnt
    again from all of them.
    """

    kind = "fasttext"
    needs = ("fasttext",)

    epochs: int | None = None
    learning_rate: float | None = None
    width: int = 100
    pairs: bool = True
    seed: int = 0

    def _learn(self, texts: list[str], targets: NDArray[np.int64], n_classes: int) -> None:
        lines = [
            f"__label__{number} {self._words(text)}\n" for text, number in zip(texts, targets.tolist(), strict=True)
        ]
        choices = list(product(_given(self.learning_rate, _RATES), _given(self.epochs, _EPOCHS)))
        training, held = hold_out(targets, 0.1, self.seed)
        best, most = choices[0], -1.0
        for choice in choices if len(choices) > 1 and len(held) else ():
            self.model_ = self._train([lines[row] for row in training], *choice)
            right = float(np.mean(self._scores([texts[row] for row in held]).argmax(1) == targets[held]))
            if right > most:
                best, most = choice, right
        self.chosen_ = {"learning_rate": best[0], "epochs": best[1]}
        self.model_ = self._train(lines, *best)

    def _words(self, text: str) -> str:
        return " ".join(self.tokenizer_.words(text))

    def _train(self, lines: list[str], rate: float, epochs: int) -> Any:
        library = require("fasttext", extra="baselines")
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "train.txt"
            shuffled = np.random.default_rng(self.seed).permutation(len(lines))  # fastText learns in the file's order
            file.write_text("".join(lines[row] for row in shuffled), encoding="utf-8")
            for _ in range(6):  # its steps may run away on one machine and not on another
                try:
                    options = {"lr": rate, "epoch": epochs, "dim": self.width, "wordNgrams": 1 + self.pairs}
                    return library.train_supervised(str(file), thread=1, seed=self.seed, verbose=0, **options)
                except RuntimeError as error:
                    if "NaN" not in str(error):
                        raise
                    rate /= 2
        raise InputError("fastText ran away to NaN at every learning rate tried: give a lower learning_rate")

    def _scores(self, texts: list[str]) -> NDArray[Any]:
        scores = np.full((len(texts), len(self.labels_)), -30.0)
        for row, text in enumerate(texts):
            for probability, label in self.model_.f.predict(self._words(text) + "\n", -1, 0.0, "strict"):
                scores[row, int(label.removeprefix("__label__"))] = np.log(max(probability, 1e-13))
        return scores

    def _state(self, folder: Path) -> tuple[Arrays, dict[str, Any]]:
        self.model_.save_model(str(folder / _FILE))
        return {}, dict(self.chosen_)

    def _restore(self, files: ModelFiles, facts: dict[str, Any]) -> None:
        if not os.environ.get(_TRUST):
            raise StoreError(
                f"{files.path / _FILE}: is read by fastText's own code, which trusts what it reads: if you know where "
                f"the file comes from, set {_TRUST}=1"
            )
        self.model_ = require("fasttext", extra="baselines").load_model(str(files.check(_FILE)))
        self.chosen_ = dict(facts)


def _given(value: float | None, choices: Sequence[Any]) -> Sequence[Any]:
    return choices if value is None else (value,)
