"""Save and load a fitted network (`storage.model_folder` describes the folder and its checks)."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from mpad.ensemble import make_mpad
from mpad.linear.potentials import Potentials
from mpad.network import Network
from mpad.pipeline.document_model import DocumentModel
from mpad.pipeline.sequence_model import SequenceModel
from mpad.pipeline.text_model import TextModel
from mpad.registry import find_network
from mpad.storage.model_folder import (
    VECTORS,
    VOCABULARY,
    ModelFiles,
    ModelFolder,
    new_folder,
    open_model,
    read_network,
    write_json,
    write_tensors,
)
from mpad.storage.model_formats import FORMAT
from mpad.text.tokenizer import Tokenizer, saved_tokenizer


def save_model(
    model: TextModel, estimator: Mapping[str, Any], card: Mapping[str, Any], folder: str | Path, version: str
) -> None:
    """Write the model, the estimator's parameters and the model card."""
    potentials = model.potentials if isinstance(model, DocumentModel) else None
    transformer = model.transformer if isinstance(model, DocumentModel) else None
    config = {
        "format": FORMAT,
        "mpad": version,
        "kind": model.kind,
        "tokenizer": model.tokenizer.name,
        **({"graph": asdict(model.graph_config)} if isinstance(model, DocumentModel) else {}),
        "network": asdict(model.network.config),
        **({} if transformer is None else {"features": asdict(transformer)}),
        **({} if potentials is None else {"potentials": asdict(potentials.shape)}),
        "labels": model.labels.to_json(),
        "words_seen": model.vocabulary.seen,
        "estimator": dict(estimator),
        "card": dict(card),
    }
    tensors = {name: value.detach().cpu().numpy() for name, value in model.network.state_dict().items()}
    vectors = model.network.vectors.detach().cpu()
    tensors[VECTORS] = (vectors if model.network.config.learn_vectors else vectors.half()).numpy()
    if potentials is not None:
        tensors |= potentials.tensors()
    with new_folder(folder, config) as fresh:
        write_json(fresh / VOCABULARY, list(model.vocabulary.words))
        write_tensors(fresh, tensors)


def load_model(
    folder: str | Path,
    device: torch.device | str = "cpu",
    tokenizer: str | Tokenizer | Callable[[str], Iterable[str]] | None = None,
) -> tuple[TextModel, ModelFiles]:
    """Read a model and its folder; pass `tokenizer` if it was trained with a function of your own."""

    def read(files: ModelFiles) -> tuple[TextModel, ModelFiles]:
        result = read_network(files)
        chosen = saved_tokenizer(result.tokenizer, tokenizer)
        parts = chosen, result.vocabulary
        if result.graph is not None:
            network, potentials = _filled(make_mpad, result.mpad_config(), result)
            network = network.to(device).eval()
            transformer = result.transformer
            return DocumentModel(*parts, result.graph, network, result.labels, potentials, transformer), files
        make, shape = find_network(result.kind)
        baseline, _ = _filled(make, result.network(shape), result)
        return SequenceModel(result.kind, *parts, baseline.to(device).eval(), result.labels), files

    return open_model(folder, read)


def _filled(make: Callable[[Any], Any], config: Any, folder: ModelFolder) -> tuple[Any, Potentials | None]:
    """Return a network with the folder's weights, and its potentials; shapes are checked first.

    And its potentials, if it has any.
    """
    with torch.device("meta"):
        outline: Network = make(config)
    shapes = {name: tuple(value.shape) for name, value in outline.state_dict().items()}
    tensors = folder.tensors({**shapes, VECTORS: tuple(outline.vectors.shape)})
    network: Network = make(config)
    with torch.no_grad():
        network.vectors.copy_(torch.from_numpy(tensors[VECTORS]))
    network.load_state_dict({name: torch.from_numpy(tensors[name]) for name in shapes})
    return network, folder.potentials(tensors)


def as_json(value: Any) -> Any:
    """Return a constructor argument as a JSON value; anything else (a random generator) becomes None."""
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
