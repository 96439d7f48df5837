"""Hyper-parameters of the network, and the shapes of its weights; does not import torch."""

from dataclasses import dataclass, field, fields
from math import cos, pi
from typing import Any, Literal

import numpy as np

from mpad.errors import InputError

Variant = Literal["mpad", "sentence-att", "clique", "path"]
VARIANTS: tuple[Variant, ...] = ("mpad", "sentence-att", "clique", "path")
MOST_STEPS, WIDEST, MOST_MEMBERS = 100, 1 << 16, 100
Shapes = dict[str, tuple[int, ...]]


@dataclass(frozen=True)
class MPADConfig:
    """Hyper-parameters of MPAD.

    steps: rounds of message passing per level, T in the paper.
    combine: "gru" (eqs. 5, 6), or "identity" for the ablation "neighbors only".

    Presets differ in the following; the defaults are the paper's equations:
    mlp_before: a second MLP before the mean, whose output is also the state of the GRU.
    mlp_norm: batch norm inside the MLPs. mlp_relu: a ReLU after the message's MLP.
    attention_bias: a bias in W_A. score_tanh: a tanh around the attention scores.
    attention_dense: a dense layer with ReLU on the attended vector.

    The pretrained encoder differs in two more, which the paper does not have:
    read_words: the readout also gets the mean of the word vectors (t = 0).
    read_width: width of a document's vector; 0 means `hidden`, as in the paper.

    members: networks that were trained separately and are averaged.
    """

    n_classes: int
    vector_width: int
    n_words: int  # rows of the table of word vectors; 0: nodes have their own features
    variant: Variant = "mpad"
    steps: int = 2
    hidden: int = 64
    master_node: bool = True
    master_skip: bool = True
    renormalise: bool = True
    combine: Literal["gru", "identity"] = "gru"
    dropout: float = 0.5
    learn_vectors: bool = False
    mlp_before: bool = False
    mlp_norm: bool = False
    mlp_relu: bool = True
    attention_bias: bool = False
    score_tanh: bool = False
    attention_dense: bool = False
    read_words: bool = False
    read_width: int = 0
    members: int = 1

    def __post_init__(self) -> None:
        if self.variant not in VARIANTS:
            raise InputError(f"no variant '{self.variant}' (known: {', '.join(VARIANTS)})")
        if self.combine not in ("gru", "identity"):
            raise InputError(f"combine must be 'gru' or 'identity', not '{self.combine}'")
        most = {"steps": MOST_STEPS, "hidden": WIDEST, "vector_width": WIDEST, "members": MOST_MEMBERS}
        for name, largest in most.items():
            value = getattr(self, name)
            if not isinstance(value, (int, np.integer)) or not 1 <= value <= largest:
                raise InputError(f"{name} must be a whole number from 1 to {largest:,}, not {value!r}")
        if not isinstance(self.read_width, (int, np.integer)) or not 0 <= self.read_width <= WIDEST:
            raise InputError(f"read_width must be a whole number from 0 to {WIDEST:,}, not {self.read_width!r}")
        for each in fields(self):
            if each.type is bool:
                object.__setattr__(self, each.name, bool(getattr(self, each.name)))  # NumPy's are not Python's
        if not 0.0 <= self.dropout < 1.0:
            raise InputError(f"dropout must be at least 0 and below 1, not {self.dropout}")

    @property
    def contextual(self) -> bool:
        """True if nodes have their own features, so that there is no table of word vectors."""
        return self.n_words == 0

    @property
    def document_width(self) -> int:
        """Width of a document's vector."""
        return self.read_width or self.hidden

    @property
    def hierarchical(self) -> bool:
        """True if a document is a sequence of sentence graphs."""
        return self.variant != "mpad"

    @property
    def table_width(self) -> int:
        """Width of the table of word vectors; each member has its own columns if they are trained."""
        return self.vector_width * (self.members if self.learn_vectors else 1)

    def tensor_shapes(self) -> Shapes:
        """Return name and shape of every tensor of a saved network, word vectors included."""
        shapes, one = {"vectors": (self.n_words, self.table_width)}, self._member_shapes()
        if self.members == 1:
            return shapes | one
        return shapes | {f"members.{k}.{name}": shape for k in range(self.members) for name, shape in one.items()}

    def _member_shapes(self) -> Shapes:
        shapes = self._level_shapes("words", self.vector_width, self.steps, self.master_node, first=True)
        if self.hierarchical:
            steps = 0 if self.variant == "sentence-att" else self.steps
            shapes |= self._level_shapes("sentences", self.document_width, steps, master=False, first=False)
        return shapes | _linear("classes", self.document_width, self.n_classes)

    def _level_shapes(self, level: str, in_width: int, steps: int, master: bool, first: bool) -> Shapes:
        shapes: Shapes = {}
        for t in range(steps):
            shapes |= self._round_shapes(f"{level}.rounds.{t}", self.hidden if t else in_width, first and t == 0)
        width, read_rounds = self.hidden if steps else in_width, max(steps, 1)
        for t in range(read_rounds):
            name = f"{level}.readout.attention.{t}"
            shapes |= _linear(f"{name}.align", width, width, bias=self.attention_bias)
            shapes |= _linear(f"{name}.context", width, 1, bias=False)
            shapes |= _linear(f"{name}.dense", width, width) if self.attention_dense else {}
        read = read_rounds * width * (2 if master and self.master_skip else 1)
        read += in_width if first and self.read_words else 0
        norm, dense = _norm(f"{level}.readout.norm", read), _linear(f"{level}.readout.dense", read, self.document_width)
        return shapes | norm | dense

    def _round_shapes(self, name: str, in_width: int, first: bool) -> Shapes:
        width, gated = self.hidden, self.combine == "gru"
        shapes = _linear(f"{name}.mlp1", width if self.mlp_before else in_width, width)
        shapes |= _linear(f"{name}.mlp2", width, width)
        if self.mlp_norm:
            shapes |= _norm(f"{name}.mlp_norm", width)
        if self.mlp_before:
            shapes |= _linear(f"{name}.before1", in_width, width) | _linear(f"{name}.before2", width, width)
            shapes |= _norm(f"{name}.before_norm", width) if self.mlp_norm else {}
        elif gated and (first or in_width != width):
            shapes |= _linear(f"{name}.project", in_width, width, bias=False)
        if gated:
            shapes |= _linear(f"{name}.gate.from_message", width, 3 * width)
            shapes |= _linear(f"{name}.gate.from_state", width, 2 * width, bias=False)
            shapes |= _linear(f"{name}.gate.from_reset", width, width, bias=False)
        return shapes


def _linear(name: str, n_in: int, n_out: int, bias: bool = True) -> Shapes:
    return {f"{name}.weight": (n_out, n_in), **({f"{name}.bias": (n_out,)} if bias else {})}


def _norm(name: str, width: int) -> Shapes:
    each = {f"{name}.{part}": (width,) for part in ("weight", "bias", "running_mean", "running_var")}
    return {**each, f"{name}.num_batches_tracked": ()}


@dataclass(frozen=True)
class TrainingConfig:
    """Settings of a training: Adam on cross-entropy, the best epoch kept.

    schedule: of the learning rate: "constant"; "halving" it every 50 epochs, as the authors' code does; or "cosine",
        down to nothing at `max_epochs`, after a first epoch at half the rate.
    weight_decay: of the weights of linear maps, as in AdamW.
    anchor: decay of all weights towards those that training started from (L2-SP; Li et al., 2018).
    keep: which epoch's weights are kept, the "best" on validation documents or the "last".
    by_length: batches of documents of about the same length, for networks that pad.
    patience: epochs without a better validation accuracy before stopping; None: never.
    """

    max_epochs: int = 200
    patience: int | None = 20
    batch_size: int = 128
    learning_rate: float = 0.001
    schedule: Literal["constant", "halving", "cosine"] = "constant"
    seed: int = 0
    by_length: bool = False
    weight_decay: float = 0.0
    anchor: float = 0.0
    keep: Literal["best", "last"] = "best"

    def __post_init__(self) -> None:
        for name in ("max_epochs", "batch_size"):
            value = getattr(self, name)
            if not isinstance(value, (int, np.integer)) or value < 1:
                raise InputError(f"{name} must be a whole number, at least 1, not {value!r}")
        if not self.learning_rate > 0:
            raise InputError(f"learning_rate must be above 0, not {self.learning_rate}")
        if self.patience is not None and self.patience < 1:
            raise InputError(f"patience must be at least 1 epoch, or None for no early stopping, not {self.patience}")

    def rate_factor(self, epoch: int) -> float:
        """Return the factor of the learning rate in an epoch, counted from 1."""
        if self.schedule == "halving":
            return 0.5 ** ((epoch - 1) // 50)
        if self.schedule == "cosine":
            return 0.5 if epoch == 1 else 0.5 + 0.5 * cos(pi * (epoch - 1) / self.max_epochs)
        return 1.0


@dataclass(frozen=True)
class Preset:
    """Settings of a preset: fields of `MPADConfig` and `TrainingConfig`, and whether it has a linear part."""

    network: dict[str, Any] = field(default_factory=dict)
    training: dict[str, Any] = field(default_factory=dict)
    potentials: bool = False
    most_passes: int | None = None  # documents that training passes over at most, in whole epochs, but four of these
    few: int = 0  # with fewer documents than that, batches are a quarter as large
    many: int | None = None  # with more, weights decay less per step: as much per epoch as with so many documents

    def training_on(self, n_documents: int) -> dict[str, Any]:
        """Return fields of `TrainingConfig` for a corpus of that size."""
        training = dict(self.training)
        if self.most_passes is not None:
            training["max_epochs"] = min(training["max_epochs"], max(4, self.most_passes // max(n_documents, 1)))
        if n_documents < self.few:
            training["batch_size"] //= 4
        if self.many is not None and n_documents > self.many:
            training |= {name: training[name] * self.many / n_documents for name in ("weight_decay", "anchor")}
        return training


_AUTHORS = {
    "mlp_before": True,
    "mlp_norm": True,
    "mlp_relu": False,
    "attention_bias": True,
    "score_tanh": True,
    "attention_dense": True,
}
PRESETS = {
    "best": Preset(
        network=_AUTHORS,
        training={
            "max_epochs": 15,
            "patience": None,
            "batch_size": 64,
            "learning_rate": 0.003,
            "schedule": "cosine",
            "weight_decay": 1.0,
            "anchor": 0.0,
            "keep": "last",
        },
        potentials=True,
        most_passes=400_000,
        few=1_000,
        many=10_000,
    ),
    "paper": Preset(),
    "authors": Preset(network=_AUTHORS, training={"schedule": "halving"}),
}


FINE_TUNING, FINE_TUNING_DROPOUT = {"max_epochs": 10, "anchor": 1.0}, 0.2  # of training that starts from an encoder
FEW_LABELS = 300  # documents below which an encoder is not trained further (docs/LOG.md)

DEFAULT_PRESET = "best"


def find_preset(name: str) -> Preset:
    """Return the preset of that name."""
    if name not in PRESETS:
        raise InputError(f"no preset '{name}' (known: {', '.join(PRESETS)})")
    return PRESETS[name]
