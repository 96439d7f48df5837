"""Start training from an encoder: where that is possible, and its weights in a new network."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from mpad.encoder.encoder import AUTO, Encoder, load_encoder
from mpad.errors import DataWarning, InputError
from mpad.graph.build import GraphConfig
from mpad.inference.network import Answer
from mpad.linear.few import update_weights
from mpad.linear.fit import fit_regression
from mpad.model import MPAD
from mpad.network import Corpus, in_batches
from mpad.storage.model_folder import VECTORS
from mpad.training.task import Examples

Logits = NDArray[np.floating]  # (documents, …)
_STRENGTH = 3.0  # C of the regression that the last layer starts from
_MOST_FITTED = 10_000  # documents of that regression
LEAST_KNOWN = 0.7  # share of the running words that the shipped encoder must know


@dataclass(frozen=True)
class Start:
    """Where training starts: an encoder, or None for random weights and why."""

    encoder: Encoder | None
    reason: str = ""  # why an encoder is not used, for people


def choose_start(
    encoder: str | Path | None,
    words: Sequence[str],
    counts: NDArray[np.integer],
    settings: Mapping[str, Any],
    graph: GraphConfig,
    others: Sequence[str],
) -> Start:
    """Choose the encoder that training starts from.

    Parameters
    ----------
    encoder : str, path or None
        "auto": the shipped one, if it fits documents and settings. A folder: that one, or an error. None: none.
    words, counts
        The words of the documents, and how often each occurs.
    settings : mapping
        Settings of the network that the user has chosen, or their defaults.
    graph : GraphConfig
        How graphs are built.
    others : sequence of str
        Further settings that the user has chosen and that exclude an encoder.

    Returns
    -------
    Start

    """
    if encoder is None:
        return Start(None)
    if str(encoder) == AUTO and others:
        return Start(None)
    found = load_encoder(encoder)
    changed = [name for name, value in settings.items() if found.sizes[name] != value]
    changed += [] if graph == found.graph_config else ["window, directed or weighting"]
    changed += others
    if str(encoder) == AUTO:
        share = known_share(found, words, counts)
        if changed:
            return Start(None, f"the encoder has other settings ({', '.join(changed)}): trained from random weights")
        if share < LEAST_KNOWN:
            known = f"the English encoder knows {100 * share:.0f} % of the words of these documents"
            return Start(None, f"{known}: trained from random weights")
        return Start(found)
    share = known_share(found, words, counts)
    if not changed and share < LEAST_KNOWN:
        knows = f"the encoder '{encoder}' knows {100 * share:.0f} % of the words of these documents"
        warnings.warn(f"{knows}: is it for another language or field?", DataWarning, stacklevel=2)
    if changed:
        raise InputError(
            f"encoder '{encoder}' was trained with other settings ({', '.join(changed)}): leave these at their "
            "defaults, or set encoder=None"
        )
    return Start(found)


def known_share(encoder: Encoder, words: Sequence[str], counts: NDArray[np.integer]) -> float:
    """Return the share of the running words, numbers and marks left out, that an encoder has vectors for."""
    chosen = [k for k, word in enumerate(words) if any(map(str.isalpha, word))]
    total = sum(int(counts[k]) for k in chosen)
    return sum(int(counts[k]) for k in chosen if encoder.knows(words[k])) / total if total else 0.0


def start_from(network: nn.Module, encoder: Encoder) -> None:
    """Copy an encoder's weights into a network of its sizes, except the last layer's."""
    weights = {
        name: torch.from_numpy(np.array(value))
        for name, value in encoder.tensors.items()
        if name != VECTORS and not name.startswith("classes.")
    }
    network.load_state_dict(weights, strict=False)


def fit_last_layer(network: MPAD, encoder: Encoder, examples: Examples) -> None:
    """Fit the last layer by a logistic regression on the encoder's outputs, with all other weights as they are."""
    if network.config.hierarchical or not len(examples):
        return
    every = slice(None, None, -(-len(examples) // _MOST_FITTED))
    outputs, scale = scaled_outputs(encoder, document_vectors(network, examples.corpus, examples.documents[every]))
    to_output, offset = encoder.tensors["classes.weight"], encoder.tensors["classes.bias"]
    targets, weights = examples.targets[every].cpu().numpy(), examples.weights[every].cpu().numpy()
    weight, bias = fit_regression(outputs, targets, weights, network.config.n_classes, _STRENGTH)
    set_last_layer(network, scale * weight @ to_output, bias + scale * weight @ offset)


@torch.no_grad()
def set_last_layer(network: MPAD, weight: NDArray[np.floating], bias: NDArray[np.floating]) -> None:
    """Replace weights (classes, document_width) and biases (classes,) of the last layer."""
    network.classes.weight.copy_(torch.from_numpy(weight))
    network.classes.bias.copy_(torch.from_numpy(bias))


def update_last_layer(
    network: MPAD,
    encoder: Encoder,
    answer: Answer,
    share: float,
    targets: NDArray[Any],
    weights: NDArray[np.floating],
    n_before: int,
) -> None:
    """Adjust the last layer to further documents.

    `answer` is the whole model's for these documents, in which the network's logits count `share` times; the model has
    seen `n_before` documents.
    """
    outputs, scale = scaled_outputs(encoder, answer.vectors)
    to_output, offset = encoder.tensors["classes.weight"], encoder.tensors["classes.bias"]
    change, shift = update_weights(answer.logits, outputs, targets, weights, n_before)
    weight, bias = (x.detach().cpu().numpy() for x in (network.classes.weight, network.classes.bias))
    weight, bias = weight + scale * change @ to_output / share, bias + (shift + scale * change @ offset) / share
    set_last_layer(network, weight, bias)


def scaled_outputs(encoder: Encoder, vectors: Logits) -> tuple[Logits, float]:
    """Return an encoder's outputs for document vectors, scaled to a mean length of one, and the scale."""
    outputs = vectors @ encoder.tensors["classes.weight"].T + encoder.tensors["classes.bias"]
    scale = 1 / max(float(np.linalg.norm(outputs, axis=1).mean()), float(np.finfo(np.float32).tiny))
    return scale * outputs, scale


@torch.no_grad()
def document_vectors(network: MPAD, corpus: Corpus, documents: Tensor) -> NDArray[np.float32]:
    """Return the vectors that the last layer reads: (documents, document_width)."""
    network.eval()
    vectors = [network(batch).vectors for batch in in_batches(corpus, documents)]
    return np.asarray(torch.cat(vectors).float().cpu().numpy())
