"""The networks of one model: a task for each to be trained, and what they are together.

Every member has first weights, an order of documents, dropout and a held-out part of its own. So documents that some
member has not seen are many more than one network's: what network and linear part count is fitted on all of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from mpad._version import __version__
from mpad.config import MOST_MEMBERS
from mpad.ensemble import Ensemble
from mpad.errors import InputError
from mpad.estimator.untrained import untrained_network
from mpad.estimator.warm_start import copy_weights
from mpad.model import MPAD
from mpad.pipeline.text_model import TextModel
from mpad.text.vectors import random_rows
from mpad.training.checkpoint import fingerprint
from mpad.training.examples import Corpus, Examples, make_examples
from mpad.training.holdout import hold_out
from mpad.training.loop import History
from mpad.training.task import Task

if TYPE_CHECKING:
    from mpad.estimator.text_classifier import TextClassifier

Rows = NDArray[np.int64]
NO_ROWS: Rows = np.zeros(0, np.int64)


@dataclass(frozen=True)
class TrainingData:
    """Documents as networks read them, with what is known of each."""

    packed: Any
    corpus: Corpus  # the same on a device
    targets: NDArray[Any]  # (documents,) class numbers, or (documents, classes) indicators
    weights: NDArray[np.float32]  # (documents,)
    groups: Rows | None = None  # (documents,), the same for equal texts, which no split separates


def check_members(members: Any) -> int:
    """Refuse a number of networks that is none."""
    if isinstance(members, bool) or not isinstance(members, (int, np.integer)) or not 1 <= members <= MOST_MEMBERS:
        raise InputError(f"members must be a whole number from 1 to {MOST_MEMBERS}, not {members!r}")
    return int(members)


def make_tasks(
    estimator: "TextClassifier",
    model: TextModel,
    data: TrainingData,
    chosen: Rows,
    held: Rows | None,
    seed: int,
    watched: Rows | None = None,
    earlier: TextModel | None = None,
    unseen: NDArray[np.bool_] | None = None,
) -> list[Task]:
    """A task a member; without `held`, each holds out a part of `chosen` of its own. All start from the same seed.

    Networks start from the weights of the model `earlier`, if there is one, and only `unseen` documents are held out.
    """
    n_rows, width = model.network.vectors.shape
    device, tasks = data.corpus.device, []
    vectors = model.network.vectors.detach().to(device)
    for own in _seeds(seed, estimator._members):
        network = untrained_network(estimator, len(model.labels), n_rows, width, own).to(device)
        if estimator._learns_vectors:  # learnt from scratch, each member from rows of its own
            vectors = torch.from_numpy(random_rows(n_rows, width, own)).to(device)
        network.set_vectors(vectors)
        if earlier is not None:
            copy_weights(network, model.vocabulary, earlier)
        learnt, checked = chosen, held
        if checked is None:
            among, fraction = None if unseen is None else unseen[chosen], estimator.validation_fraction
            groups = None if data.groups is None else data.groups[chosen]
            learnt, checked = (chosen[part] for part in hold_out(data.targets[chosen], fraction, own, among, groups))
        tasks.append(
            Task(
                network,
                make_examples(data.corpus, learnt, data.targets, data.weights),
                make_examples(data.corpus, checked, data.targets) if len(checked) else None,
                estimator._training_config(own, len(chosen)),
                None if watched is None else make_examples(data.corpus, watched, data.targets),
            )
        )
    return tasks


def as_long(task: Task, history: History) -> Task:
    """Train for as many epochs as an earlier training of it kept, and keep the last."""
    epochs = max(history.best_epoch, 1)
    return replace(task, config=replace(task.config, max_epochs=epochs, patience=None, keep="last"))


def _seeds(seed: int, members: int) -> list[int]:
    """A seed a member; the first is that of a model of one."""
    others = np.random.default_rng([seed, 1]).integers(2**31 - 1, size=members - 1)
    return [seed, *others.tolist()]


def trained_model(model: TextModel, tasks: Sequence[Task]) -> TextModel:
    """The same reading of text, with the networks that were trained."""
    networks = [task.network for task in tasks]
    if len(networks) == 1:
        return model.with_network(networks[0])
    return model.with_network(Ensemble.of([network for network in networks if isinstance(network, MPAD)]))


def held_out_logits(model: TextModel, tasks: Sequence[Task], packed: Any) -> tuple[Rows, Rows, NDArray[np.floating]]:
    """What members say of documents that they have not seen, those of one document averaged.

    Documents that every member has seen; those that some have not; the logits of these: (held, classes).
    """
    parts = [(documents(task.examples), documents(task.validation)) for task in tasks]
    n = 1 + max((int(rows.max()) for part in parts for rows in part if len(rows)), default=-1)
    total, counts, used = np.zeros((n, len(model.labels)), np.float32), np.zeros(n, np.int64), np.zeros(n, bool)
    for task, (learnt, held) in zip(tasks, parts, strict=True):
        total[held] += model.with_network(task.network).network_logits(packed, held)
        counts[held] += 1
        used[learnt] = used[held] = True
    held = np.flatnonzero(counts)
    seen = np.flatnonzero(used & (counts == 0))
    return np.asarray(seen, np.int64), np.asarray(held, np.int64), np.asarray(total[held] / counts[held, None])


def documents(examples: Examples | None) -> Rows:
    """Documents of some examples."""
    return np.zeros(0, np.int64) if examples is None else examples.documents.cpu().numpy()


_FREE_AT_RESUME = ("max_epochs", "verbose", "device")  # what may differ from the training that a checkpoint is of


def checkpoint_key(parameters: Mapping[str, Any], model: TextModel, data: TrainingData, task: Task) -> str:
    """What a checkpoint belongs to: the documents as the network reads them, its first weights, the settings."""
    settings = {name: value for name, value in parameters.items() if name not in _FREE_AT_RESUME}
    arrays = {name: value for name, value in vars(data.packed).items() if isinstance(value, np.ndarray)}
    arrays |= {"y": data.targets, "w": data.weights, "held": documents(task.validation)}
    arrays |= {name: value.cpu().numpy() for name, value in model.network.state_dict().items()}
    arrays["vectors"] = model.network.vectors.detach().cpu().numpy()
    return fingerprint([__version__, settings, list(model.vocabulary.words)], arrays)
