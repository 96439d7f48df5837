"""Every system by name, behind one interface: fit, predict, predict_proba, save, load.

>>> from mpad import zoo
>>> zoo.make("cnn", max_epochs=20)                       # doctest: +SKIP
>>> zoo.load("my-model").predict(["a moving film"])      # doctest: +SKIP
"""

from pathlib import Path
from typing import Any

from mpad.classifier import MPADClassifier
from mpad.errors import InputError
from mpad.model_folder import read_folder
from mpad.models.config import VARIANTS
from mpad.models.rivals import RIVALS, rival_options
from mpad.sequence_classifier import SequenceClassifier
from mpad.text_classifier import TextClassifier

_MPAD = {"mpad" if variant == "mpad" else f"mpad-{variant}": variant for variant in VARIANTS}
NAMES = (*_MPAD, *RIVALS)


def make(name: str, **parameters: Any) -> TextClassifier:
    """An unfitted estimator; what a network alone has may be given beside what all have."""
    if name in _MPAD:
        return MPADClassifier(_MPAD[name], **parameters)
    if name not in RIVALS:
        raise InputError(f"no model '{name}' (known: {', '.join(NAMES)})")
    own = {key: value for key, value in parameters.items() if key in rival_options(name)}
    others = {key: value for key, value in parameters.items() if key not in own}
    return SequenceClassifier(name, options=own or None, **others)


def load(folder: str | Path, device: str = "auto") -> TextClassifier:
    """Read whatever model a folder holds."""
    kind = read_folder(folder).kind
    return (MPADClassifier if kind == "mpad" else SequenceClassifier).load(folder, device)
