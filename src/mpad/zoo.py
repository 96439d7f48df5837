"""Every system by name, behind one interface: fit, predict, save, load; predict_proba where it makes sense.

>>> from mpad import zoo
>>> zoo.make("cnn", max_epochs=20)                       # doctest: +SKIP
>>> zoo.load("my-model").predict(["a moving film"])      # doctest: +SKIP
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from mpad.classifier import MPADClassifier
from mpad.errors import DamagedModel, InputError
from mpad.model_folder import read_kind
from mpad.models.rivals import RIVALS, rival_options
from mpad.nn.config import VARIANTS
from mpad.rivals.doc2vec import Doc2Vec
from mpad.rivals.fasttext import FastText
from mpad.rivals.minilm import MiniLM
from mpad.rivals.plain import PlainClassifier
from mpad.rivals.spgk import SPGK
from mpad.rivals.tfidf_svm import TfidfSVM
from mpad.rivals.wmd import WMD
from mpad.sequence.trees import TREE_WORDS
from mpad.sequence_classifier import SequenceClassifier
from mpad.text.tokenizer import Tokenizer
from mpad.text_classifier import TextClassifier

MPAD_VARIANTS = {"mpad" if variant == "mpad" else f"mpad-{variant}": variant for variant in VARIANTS}
PLAIN: dict[str, type[PlainClassifier]] = {own.kind: own for own in (TfidfSVM, Doc2Vec, SPGK, WMD, FastText, MiniLM)}
NETWORKS = (*MPAD_VARIANTS, *RIVALS)
NAMES = (*NETWORKS, *PLAIN)


def make(name: str, **parameters: Any) -> TextClassifier | PlainClassifier:
    """An unfitted estimator; what a network alone has may be given beside what all have."""
    return PLAIN[name](**parameters) if name in PLAIN else make_network(name, **parameters)


def make_with(name: str, options: Mapping[str, Any]) -> TextClassifier | PlainClassifier:
    """An unfitted estimator with those of the options that it has: for settings that many models share."""
    if name not in PLAIN:
        return make_network(name, **{**options, **({"vectors": None} if name == "widemlp" else {})})
    return PLAIN[name](**{key: value for key, value in options.items() if key in PLAIN[name]._get_param_names()})


def make_network(name: str, **parameters: Any) -> TextClassifier:
    """An unfitted estimator of one of the networks."""
    if name in MPAD_VARIANTS:
        return MPADClassifier(MPAD_VARIANTS[name], **parameters)
    if name not in RIVALS:
        raise InputError(f"no model '{name}' (known: {', '.join(NAMES)})")
    own = {key: value for key, value in parameters.items() if key in rival_options(name)}
    others = {key: value for key, value in parameters.items() if key not in own}
    if RIVALS[name][0].reads_trees:
        others["tokenizer"] = TREE_WORDS
    return SequenceClassifier(name, options=own or None, **others)


def load(
    folder: str | Path,
    device: str = "auto",
    tokenizer: str | Tokenizer | Callable[[str], Iterable[str]] | None = None,
) -> TextClassifier | PlainClassifier:
    """Read whatever model a folder holds; `tokenizer` hands in a function of your own that it was trained with."""
    kind = read_kind(folder)
    if kind in PLAIN:
        return PLAIN[kind].load(folder)
    if kind != "mpad" and kind not in RIVALS:
        raise DamagedModel(f"{folder}: a '{kind[:60]}' is none of the models that are known here ({', '.join(NAMES)})")
    return (MPADClassifier if kind == "mpad" else SequenceClassifier).load(folder, device, tokenizer)
