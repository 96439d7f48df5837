"""A fitted model ↔ a folder that one can read.

    config.json         everything but numbers: format version, network, graph, tokenizer, labels, estimator
    vocabulary.json     the words, in the order of their ids
    model.safetensors   the weights, and the word vectors (float16 where they were not learnt)

No pickle anywhere. The folder is written beside its place and renamed into it, so a reader never sees half of one.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from mpad.document_model import DocumentModel
from mpad.errors import DamagedModel, FutureFormat, MissingModelFile, ShapeMismatch, StoreError
from mpad.graph.build import GraphConfig
from mpad.labels import Labels
from mpad.models.mpad import MPAD, MPADConfig
from mpad.text.tokenizer import CallableTokenizer, Tokenizer, as_tokenizer
from mpad.text.vocabulary import Vocabulary

FORMAT = 1
CONFIG, VOCABULARY, WEIGHTS = "config.json", "vocabulary.json", "model.safetensors"
_VECTORS = "vectors"


def save_model(model: DocumentModel, estimator: Mapping[str, Any], folder: str | Path, version: str) -> None:
    """Write the model, and the estimator's parameters beside it."""
    folder = Path(folder)
    check_destination(folder)
    config = {
        "format": FORMAT,
        "mpad": version,
        "tokenizer": _tokenizer_name(model.tokenizer),
        "graph": asdict(model.graph_config),
        "network": asdict(model.network.config),
        "labels": model.labels.to_json(),
        "words_seen": model.vocabulary.seen,
        "estimator": dict(estimator),
    }
    tensors = {name: value.contiguous().cpu() for name, value in model.network.state_dict().items()}
    vectors = model.network.vectors.detach().cpu()
    tensors[_VECTORS] = (vectors if model.network.config.learn_vectors else vectors.half()).contiguous()
    folder.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        (beside / CONFIG).write_text(json.dumps(config, indent=2, allow_nan=True) + "\n", encoding="utf-8")
        (beside / VOCABULARY).write_text(json.dumps(list(model.vocabulary.words)) + "\n", encoding="utf-8")
        save_file(tensors, beside / WEIGHTS)
        os.chmod(beside, 0o755)  # mkdtemp makes folders private; a model is an ordinary folder
        _swap(beside, folder)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def check_destination(folder: Path) -> None:
    """Refuse a place that holds something other than a model; ask before training, not after."""
    if folder.exists() and not (folder / CONFIG).is_file() and (not folder.is_dir() or any(folder.iterdir())):
        raise StoreError(f"{folder} is there already and is not a model; choose another folder, or remove it")


def _tokenizer_name(tokenizer: Tokenizer) -> str:
    name = tokenizer.name
    if isinstance(tokenizer, CallableTokenizer) and ("<" in name or "None" in name or name.startswith("__main__:")):
        raise StoreError(
            f"the tokenizer '{name}' cannot be saved: only a function that others can import by name; "
            "move it to module level of an importable file"
        )
    return name


def _swap(fresh: Path, folder: Path) -> None:
    if not folder.exists():
        fresh.rename(folder)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{folder.name}-old-", dir=folder.parent))
    folder.rename(old / folder.name)
    fresh.rename(folder)
    shutil.rmtree(old, ignore_errors=True)


def load_model(
    folder: str | Path,
    device: torch.device | str = "cpu",
    tokenizer: str | Tokenizer | Callable[[str], Iterable[str]] | None = None,
) -> tuple[DocumentModel, dict[str, Any]]:
    """Read a model and the estimator's parameters; `tokenizer` stands in for one that cannot be imported."""
    folder = Path(folder)
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
    words = _read_json(folder / VOCABULARY)
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise DamagedModel(f"{folder / VOCABULARY}: expected a list of words")
    try:
        vocabulary = Vocabulary(words, seen=int(config["words_seen"]))
        network = MPAD(MPADConfig(**config["network"]))
        graph_config, labels = GraphConfig(**config["graph"]), Labels.from_json(config["labels"])
        estimator = dict(config["estimator"])
        chosen = config["tokenizer"] if tokenizer is None else tokenizer
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedModel(f"{folder / CONFIG}: {type(error).__name__}: {error}") from None
    if vocabulary.n_rows != network.config.n_words:
        raise ShapeMismatch(
            f"{folder / VOCABULARY}: {len(words):,} words make {vocabulary.n_rows:,} rows, but {CONFIG} says "
            f"{network.config.n_words:,}: the files are not of one model"
        )
    _fill(network, folder / WEIGHTS)
    model = DocumentModel(as_tokenizer(chosen), vocabulary, graph_config, network.to(device).eval(), labels)
    return model, estimator


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise MissingModelFile(f"{path}: no such file: {path.parent} is not a model, or not a whole one") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise DamagedModel(f"{path}: not valid JSON: {error}") from None


def _fill(network: MPAD, path: Path) -> None:
    try:
        tensors = load_file(path)
    except FileNotFoundError:
        raise MissingModelFile(f"{path}: no such file: the model folder is incomplete") from None
    except (SafetensorError, OSError, ValueError) as error:
        raise DamagedModel(f"{path}: not a whole safetensors file: {error}") from None
    expected = {name: value.shape for name, value in network.state_dict().items()} | {_VECTORS: network.vectors.shape}
    for name, shape in expected.items():
        if name not in tensors:
            raise DamagedModel(f"{path}: the tensor '{name}' is missing")
        if tensors[name].shape != shape:
            raise ShapeMismatch(
                f"{path}: the tensor '{name}' has shape {tuple(tensors[name].shape)}, but {CONFIG} asks for "
                f"{tuple(shape)}: the files are not of one model"
            )
        if tensors[name].is_floating_point() and not torch.isfinite(tensors[name]).all():
            raise DamagedModel(f"{path}: the tensor '{name}' holds NaN or infinity")
    if set(tensors) - set(expected):
        raise DamagedModel(f"{path}: unexpected tensors: {', '.join(sorted(set(tensors) - set(expected)))}")
    with torch.no_grad():
        network.vectors.copy_(tensors[_VECTORS].float())
    network.load_state_dict({name: value for name, value in tensors.items() if name in network.state_dict()})


def as_json(value: Any) -> Any:
    """A constructor argument as JSON can hold it; what it cannot (a random generator) is left to its default."""
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {str(key): float(item) for key, item in value.items()}
    return getattr(value, "name", None)
