"""A model's folder → what it says, checked; without torch, so that a model can be read where torch is not.

config.json         everything but numbers: format version, network, graph, tokenizer, labels, estimator
vocabulary.json     the words, in the order of their ids
model.safetensors   the weights, and the word vectors (float16 where they were not learnt)
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from mpad.errors import DamagedModel, FutureFormat, MissingModelFile, ShapeMismatch, StoreError
from mpad.graph.build import GraphConfig
from mpad.labels import Labels
from mpad.models.config import MPADConfig
from mpad.text.vocabulary import Vocabulary

FORMAT = 1
CONFIG, VOCABULARY, WEIGHTS = "config.json", "vocabulary.json", "model.safetensors"
VECTORS = "vectors"  # name of the tensor that holds the word vectors


@dataclass(frozen=True)
class ModelFolder:
    """What a folder says of its model; the numbers are read by `tensors`."""

    path: Path
    tokenizer: str
    vocabulary: Vocabulary
    kind: str  # which network
    graph: GraphConfig | None  # None: the network reads words in their order
    network: dict[str, Any]  # the network's shape
    labels: Labels
    estimator: dict[str, Any]

    def mpad_config(self) -> MPADConfig:
        """The shape of MPAD; of another network it says so."""
        if self.kind != "mpad":
            raise StoreError(f"{self.path}: the model is a '{self.kind}', not an 'mpad': mpad.zoo.load reads it")
        try:
            return MPADConfig(**self.network)
        except (TypeError, ValueError) as error:
            raise DamagedModel(f"{self.path / CONFIG}: {type(error).__name__}: {error}") from None

    def tensors(self) -> dict[str, NDArray[Any]]:
        """Read all tensors, the word vectors among them."""
        path = self.path / WEIGHTS
        try:
            with safe_open(path, framework="numpy") as file:
                found = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118, it is no dict
        except FileNotFoundError:
            raise MissingModelFile(f"{path}: no such file: the model folder is incomplete") from None
        except (SafetensorError, OSError, ValueError) as error:
            raise DamagedModel(f"{path}: not a whole safetensors file: {error}") from None
        for name, value in found.items():
            if value.dtype.kind == "f" and not np.isfinite(value).all():
                raise DamagedModel(f"{path}: the tensor '{name}' holds NaN or infinity")
        shape = (self.network["n_words"], self.network["vector_width"])
        if VECTORS in found and found[VECTORS].shape != shape:
            raise ShapeMismatch(
                f"{path}: the tensor '{VECTORS}' has shape {found[VECTORS].shape}, but {CONFIG} asks for {shape}: "
                "the files are not of one model"
            )
        return found


def read_folder(folder: str | Path) -> ModelFolder:
    """Read all but the numbers."""
    folder = Path(folder)
    config = _read_config(folder)
    words = _read_json(folder / VOCABULARY)
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise DamagedModel(f"{folder / VOCABULARY}: expected a list of words")
    try:
        found = ModelFolder(
            folder,
            config["tokenizer"],
            Vocabulary(words, seen=int(config["words_seen"])),
            str(config.get("kind", "mpad")),
            GraphConfig(**config["graph"]) if "graph" in config else None,
            {"n_words": 0, "vector_width": 0, **config["network"]},
            Labels.from_json(config["labels"]),
            dict(config["estimator"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedModel(f"{folder / CONFIG}: {type(error).__name__}: {error}") from None
    if found.kind == "mpad":
        found.mpad_config()
    if found.vocabulary.n_rows != found.network["n_words"]:
        raise ShapeMismatch(
            f"{folder / VOCABULARY}: {len(words):,} words make {found.vocabulary.n_rows:,} rows, but {CONFIG} says "
            f"{found.network['n_words']:,}: the files are not of one model"
        )
    return found


def read_kind(folder: str | Path) -> str:
    """Which model a folder holds, by its name in the zoo."""
    return str(_read_config(Path(folder)).get("kind", "mpad"))


def _read_config(folder: Path) -> dict[str, Any]:
    if not folder.is_dir():
        raise MissingModelFile(f"{folder}: no such folder; expected one that save() or 'mpad fit --out' wrote")
    config = _read_json(folder / CONFIG)
    if not isinstance(config, dict) or not isinstance(config.get("format"), int):
        raise DamagedModel(f"{folder / CONFIG}: expected an object with a format version; this is no mpad model")
    if config["format"] > FORMAT:
        raise FutureFormat(
            f"{folder}: written in format {config['format']} by mpad {config.get('mpad')}; this version reads up to "
            f"format {FORMAT}: pip install --upgrade mpad"
        )
    return config


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise MissingModelFile(f"{path}: no such file: {path.parent} is not a model, or not a whole one") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise DamagedModel(f"{path}: not valid JSON: {error}") from None
