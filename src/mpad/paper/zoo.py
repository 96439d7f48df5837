"""Every system by name, behind one interface: fit, predict, save, load; predict_proba where it makes sense.

>>> from mpad.paper import zoo
>>> zoo.make("cnn", max_epochs=20)                       # doctest: +SKIP
>>> zoo.load("my-model").predict(["a moving film"])      # doctest: +SKIP
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from mpad.encoder.encoder import KIND as ENCODER
from mpad.errors import DamagedModel, InputError
from mpad.estimator.classifier import TextClassifier
from mpad.paper.baselines.base import PlainClassifier
from mpad.paper.networks.baselines import baseline_options
from mpad.registry import REGISTRY, find, find_kind
from mpad.storage.model_folder import read_kind
from mpad.text.tokenizer import Tokenizer

NAMES = tuple(REGISTRY)
NETWORKS = tuple(entry.name for entry in REGISTRY.values() if entry.is_network)


def make(name: str, **parameters: Any) -> TextClassifier | PlainClassifier:
    """Return an unfitted estimator; the options of a network may be passed along with those that all have."""
    entry = find(name)
    estimator = entry.estimator_class()
    if not entry.is_network or entry.kind == "mpad":
        made: TextClassifier | PlainClassifier = estimator(**parameters, **entry.parameters)
        return made
    own = {key: value for key, value in parameters.items() if key in baseline_options(name)}
    others = {key: value for key, value in parameters.items() if key not in own}
    network: TextClassifier = estimator(name, options=own or None, **{**others, **entry.parameters})
    return network


def make_with(name: str, options: Mapping[str, Any]) -> TextClassifier | PlainClassifier:
    """Return an unfitted estimator with those of the options that it has: for settings that many models share."""
    entry = find(name)
    known = {key: value for key, value in options.items() if key not in entry.ignores}
    if not entry.is_network:
        names = entry.estimator_class()._get_param_names()
        known = {key: value for key, value in known.items() if key in names}
    return make(name, **known)


def load(
    folder: str | Path,
    device: str = "auto",
    tokenizer: str | Tokenizer | Callable[[str], Iterable[str]] | None = None,
) -> TextClassifier | PlainClassifier:
    """Read whatever model a folder holds; `tokenizer` hands in a function of your own that it was trained with."""
    kind = read_kind(folder)
    entry = find_kind(kind)
    if kind == ENCODER:
        raise InputError(f"{folder} is an encoder, not a classifier: mpad fit DATA --encoder {folder} --out MODEL")
    if entry is None:
        raise DamagedModel(f"{folder}: a '{kind[:60]}' is none of the models that are known here ({', '.join(NAMES)})")
    estimator, given = entry.estimator_class(), (device, tokenizer) if entry.is_network else ()
    loaded: TextClassifier | PlainClassifier = estimator.load(folder, *given)
    return loaded
