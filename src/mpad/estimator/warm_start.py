"""Training that goes on from a fitted model: its classes, its weights, and which documents it has not seen."""

from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np
import torch
from numpy.typing import NDArray

from mpad.data.labels import Labels, as_labels, learn_labels
from mpad.errors import InputError
from mpad.network import Network
from mpad.pipeline.document_model import DocumentModel
from mpad.pipeline.text_model import TextModel
from mpad.text.vocabulary import Vocabulary
from mpad.training.examples import make_examples
from mpad.training.loop import train
from mpad.training.task import Task

if TYPE_CHECKING:
    from mpad.estimator.text_classifier import TextClassifier

Checksums = NDArray[np.uint32]


def earlier_model(estimator: "TextClassifier") -> TextModel | None:
    """The model that a fit goes on from: with `warm_start`, the one that is there."""
    if not getattr(estimator, "warm_start", False) or not hasattr(estimator, "model_"):
        return None
    if estimator._members > 1:
        raise InputError("warm_start is for one network; with several members, each fit begins anew")
    if getattr(estimator.model_, "transformer", None) != estimator._transformer:
        raise InputError("training goes on with the features that it began with: set them so, or warm_start=False")
    return estimator.model_


def same_classes(model: TextModel, y: NDArray[Any], names: Sequence[str] | None = None) -> Labels:
    """The model's labels; classes that it does not have are refused."""
    known = model.labels.classes.tolist()
    if model.labels.multilabel and y.ndim == 2:
        new = sorted(set(names or known) - set(known))
    elif model.labels.multilabel:
        new = sorted({str(label) for row in y for label in row if label not in known})
    else:
        new = sorted({str(label) for label in y.tolist() if label not in known})
    if new:
        raise InputError(
            f"training that goes on keeps the model's classes ({', '.join(map(str, known))}); {', '.join(new[:5])} "
            "is new: fit a new model on all documents"
        )
    return model.labels


def copy_weights(network: Network, vocabulary: Vocabulary, earlier: TextModel) -> None:
    """Begin with another model's weights; of word vectors that are learnt, with the rows of words that it knows."""
    state = {name: tensor for name, tensor in earlier.network.state_dict().items() if name != "vectors"}
    own = {name: tensor.shape for name, tensor in network.state_dict().items() if name != "vectors"}
    same_width = network.vectors.shape[1] == earlier.network.vectors.shape[1]
    if own != {name: tensor.shape for name, tensor in state.items()} or not same_width:
        raise InputError(
            "the model that training should go on from has another shape (steps, hidden, preset or word vectors): "
            "set them as they were, or begin anew with warm_start=False"
        )
    network.load_state_dict(state, strict=False)
    if isinstance(network.vectors, torch.nn.Parameter):
        rows = [(row, earlier.vocabulary.id(word)) for row, word in enumerate(vocabulary.words)]
        known = torch.tensor([pair for pair in rows if pair[1] < len(earlier.vocabulary)]).reshape(-1, 2)
        with torch.no_grad():
            network.vectors[known[:, 0]] = earlier.network.vectors.detach().to(network.vectors.device)[known[:, 1]]


def checksums(texts: Sequence[str]) -> Checksums:
    """A number for each text: (n,)."""
    return np.array([crc32(text.encode("utf-8", "surrogatepass")) for text in texts], np.uint32)


def as_text(seen: Checksums) -> str:
    """Checksums as a folder keeps them."""
    return b64encode(np.unique(seen).astype("<u4").tobytes()).decode("ascii")


def from_text(saved: Any) -> Checksums:
    """Give back what `as_text` wrote; none of anything else."""
    try:
        return np.frombuffer(b64decode(saved, validate=True), "<u4").astype(np.uint32)
    except (TypeError, ValueError):
        return np.zeros(0, np.uint32)


def partial_fit(estimator: "TextClassifier", texts: list[str], y: Any, weights: NDArray[np.float32]) -> None:
    """One epoch over these documents from the network's weights, at a tenth of the rate; all else stays as it was."""
    model = estimator.model_
    if estimator._members > 1:
        raise InputError("partial_fit is for one network; with several members, fit anew")
    labels = as_labels(y)
    targets = same_classes(model, labels).encode(labels)
    weights = weights * model.labels.weights(estimator.class_weight, targets)
    packed = model.pack(texts)
    network = type(model.network)(model.network.config).to(model.device)
    network.set_vectors(model.rows_for(packed) if isinstance(model, DocumentModel) else model.network.vectors)
    network.load_state_dict(model.network.state_dict(), strict=False)
    seed, epochs = len(estimator.history_), len(estimator.history_) + 1  # another order of documents each time
    config = estimator._training_config(seed, len(texts))
    config = replace(config, max_epochs=1, patience=None, schedule="constant", keep="last")
    config = replace(config, learning_rate=config.learning_rate / 10)
    chosen = np.arange(len(texts))
    examples = make_examples(model.tensors(packed, model.device), chosen, targets, weights)
    (history,) = train([Task(network, examples, None, config)])
    network.set_vectors(model.network.vectors if not model.network.config.learn_vectors else network.vectors)
    estimator.model_ = model.with_network(network.eval())
    estimator.history_ = [*estimator.history_, replace(history.reports[0], epoch=epochs, max_epochs=epochs)]
    estimator.best_epoch_ = estimator.n_iter_ = epochs
    estimator.trained_on_ = np.union1d(estimator.trained_on_, checksums(texts))


def check_all_classes(y: Any, classes: Any) -> None:
    """Refuse a first call of `partial_fit` that lacks documents of some class."""
    if classes is None:
        return
    missing = sorted(set(map(str, classes)) - set(map(str, learn_labels(as_labels(y)).classes.tolist())))
    if missing:
        raise InputError(f"the first call of partial_fit needs documents of every class; there are none of {missing}")
