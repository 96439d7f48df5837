"""Save and load a fitted network (`storage.model_folder` describes the folder and its checks)."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from mpad.ensemble import as_torch
from mpad.graph.build import GraphConfig
from mpad.inference.pipeline import Pipeline, read_pipeline
from mpad.network import Network
from mpad.registry import find_network
from mpad.sequence.pipeline import SequencePipeline
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
    model: Pipeline, estimator: Mapping[str, Any], card: Mapping[str, Any], folder: str | Path, version: str
) -> None:
    """Write the model, the estimator's parameters and the model card."""
    network: Network = model.network
    transformer, potentials = model.transformer, model.potentials
    config = {
        "format": FORMAT,
        "mpad": version,
        "kind": model.kind,
        "tokenizer": model.tokenizer.name,
        **({} if isinstance(model, SequencePipeline) else {"graph": asdict(model.graph_config)}),
        "network": asdict(network.config),
        **({} if transformer is None else {"features": asdict(transformer)}),
        **({} if potentials is None else {"potentials": asdict(potentials.shape)}),
        "labels": model.labels.to_json(),
        "words_seen": model.vocabulary.seen,
        "estimator": dict(estimator),
        "card": dict(card),
    }
    tensors = {name: value.detach().cpu().numpy() for name, value in network.state_dict().items()}
    vectors = network.vectors.detach().cpu()
    tensors[VECTORS] = (vectors if network.config.learn_vectors else vectors.half()).numpy()
    if potentials is not None:
        tensors |= potentials.tensors()
    with new_folder(folder, config) as fresh:
        write_json(fresh / VOCABULARY, list(model.vocabulary.words))
        write_tensors(fresh, tensors)


def load_model(
    folder: str | Path,
    device: torch.device | str = "cpu",
    tokenizer: str | Tokenizer | Callable[[str], Iterable[str]] | None = None,
) -> tuple[Pipeline, ModelFiles]:
    """Read a model and its folder; pass `tokenizer` if it was trained with a function of your own."""

    def read(files: ModelFiles) -> tuple[Pipeline, ModelFiles]:
        result = read_network(files)
        if result.graph is None:
            return _read_baseline(result, device, tokenizer), files
        pipeline = as_torch(read_pipeline(result, tokenizer))
        return pipeline.with_network(pipeline.network.to(device).float()), files

    return open_model(folder, read)


def _read_baseline(
    folder: ModelFolder,
    device: torch.device | str,
    tokenizer: str | Tokenizer | Callable[[str], Iterable[str]] | None,
) -> SequencePipeline:
    """Return the pipeline of a baseline's folder; the shapes of its tensors are checked first."""
    make, shape = find_network(folder.kind)
    config = folder.network(shape)
    with torch.device("meta"):
        outline: Network = make(config)
    shapes = {name: tuple(value.shape) for name, value in outline.state_dict().items()}
    tensors = folder.tensors({**shapes, VECTORS: tuple(outline.vectors.shape)})
    network: Network = make(config)
    with torch.no_grad():
        network.vectors.copy_(torch.from_numpy(tensors[VECTORS]))
    network.load_state_dict({name: torch.from_numpy(tensors[name]) for name in shapes})
    chosen, graph = saved_tokenizer(folder.tokenizer, tokenizer), network.graph or GraphConfig()
    network = network.to(device).eval()
    return SequencePipeline(chosen, folder.vocabulary, graph, network, folder.labels, kind=folder.kind)
