"""A fitted model ↔ a folder that one can read (see model_folder for what is in it).

No pickle anywhere. The folder is written beside its place and renamed into it, so a reader never sees half of one.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file

from mpad.document_model import DocumentModel
from mpad.errors import DamagedModel, ShapeMismatch, StoreError
from mpad.model_folder import CONFIG, FORMAT, VECTORS, VOCABULARY, WEIGHTS, ModelFolder, read_folder
from mpad.models.mpad import MPAD
from mpad.models.network import Network
from mpad.models.rivals import make_rival
from mpad.sequence_model import SequenceModel
from mpad.text.tokenizer import CallableTokenizer, Tokenizer, as_tokenizer
from mpad.text_model import TextModel


def save_model(model: TextModel, estimator: Mapping[str, Any], folder: str | Path, version: str) -> None:
    """Write the model, and the estimator's parameters beside it."""
    config = {
        "format": FORMAT,
        "mpad": version,
        "kind": model.kind,
        "tokenizer": _tokenizer_name(model.tokenizer),
        **({"graph": asdict(model.graph_config)} if isinstance(model, DocumentModel) else {}),
        "network": asdict(model.network.config),
        "labels": model.labels.to_json(),
        "words_seen": model.vocabulary.seen,
        "estimator": dict(estimator),
    }
    tensors = {name: value.contiguous().cpu() for name, value in model.network.state_dict().items()}
    vectors = model.network.vectors.detach().cpu()
    tensors[VECTORS] = (vectors if model.network.config.learn_vectors else vectors.half()).contiguous()
    with write_folder(Path(folder)) as beside:
        (beside / CONFIG).write_text(json.dumps(config, indent=2, allow_nan=True) + "\n", encoding="utf-8")
        (beside / VOCABULARY).write_text(json.dumps(list(model.vocabulary.words)) + "\n", encoding="utf-8")
        save_file(tensors, beside / WEIGHTS)


@contextmanager
def write_folder(folder: Path) -> Iterator[Path]:
    """Give a folder to write to; it takes its place, whole, when all is written."""
    check_destination(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        yield beside
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
) -> tuple[TextModel, dict[str, Any]]:
    """Read a model and the estimator's parameters; `tokenizer` stands in for one that cannot be imported."""
    found = read_folder(folder)
    chosen = as_tokenizer(found.tokenizer if tokenizer is None else tokenizer)
    if found.graph is not None:
        network = MPAD(found.mpad_config())
        _fill(network, found)
        own = DocumentModel(chosen, found.vocabulary, found.graph, network.to(device).eval(), found.labels)
        return own, found.estimator
    rival = make_rival(found.kind, found.network)
    _fill(rival, found)
    return SequenceModel(found.kind, chosen, found.vocabulary, rival.to(device).eval(), found.labels), found.estimator


def _fill(network: Network, folder: ModelFolder) -> None:
    path, tensors = folder.path / WEIGHTS, folder.tensors()
    expected = {name: tuple(value.shape) for name, value in network.state_dict().items()}
    expected[VECTORS] = tuple(network.vectors.shape)
    for name, shape in expected.items():
        if name not in tensors:
            raise DamagedModel(f"{path}: the tensor '{name}' is missing")
        if tensors[name].shape != shape:
            raise ShapeMismatch(
                f"{path}: the tensor '{name}' has shape {tensors[name].shape}, but {CONFIG} asks for {shape}: "
                "the files are not of one model"
            )
    if set(tensors) - set(expected):
        raise DamagedModel(f"{path}: unexpected tensors: {', '.join(sorted(set(tensors) - set(expected)))}")
    with torch.no_grad():
        network.vectors.copy_(torch.from_numpy(tensors[VECTORS]))
    own = network.state_dict()
    network.load_state_dict({name: torch.from_numpy(value) for name, value in tensors.items() if name in own})


def as_json(value: Any) -> Any:
    """A constructor argument as JSON can hold it; what it cannot (a random generator) is left to its default."""
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    if isinstance(value, (list, tuple)):
        return [as_json(item) for item in value]
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {str(key): as_json(item) for key, item in value.items()}
    return getattr(value, "name", None)
