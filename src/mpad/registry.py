"""The registry of systems: estimator, input and explanation methods by name, without importing torch."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Literal, get_args

from mpad.errors import InputError

Method = Literal["gradients", "occlusion", "attention", "shapley"]
METHODS: tuple[Method, ...] = get_args(Method)  # of `mpad.explain`
GENERAL_METHODS = METHODS[:3]  # for texts of any length
_TREES = {"tokenizer": "mpad.sequence.trees:tree_words"}
_NETWORK = "mpad.paper.sequence_classifier:SequenceClassifier"


@dataclass(frozen=True)
class Entry:
    """Facts about a system that are known before it is imported."""

    name: str
    estimator: str  # "module:class"
    kind: str  # its name in model folders
    reads: Literal["graphs", "words", "trees", "text"] = "text"
    explained_by: tuple[str, ...] = ()  # methods of `mpad.explain`
    probabilities: bool = True
    without_torch: bool = False  # `mpad.inference` can predict with it
    parameters: Mapping[str, Any] = field(default_factory=dict)  # of the estimator, fixed by the name
    ignores: tuple[str, ...] = ()  # common settings that this system does not use
    network: str = ""  # of a baseline, "module:class" in mpad.paper.networks

    @property
    def is_network(self) -> bool:
        """True for networks, which are trained epoch by epoch on a CPU or a GPU."""
        return self.reads != "text"

    def estimator_class(self) -> Any:
        """Import the estimator."""
        module, name = self.estimator.split(":")
        return getattr(import_module(module), name)


def _mpad(name: str, variant: str) -> Entry:
    classifier = "mpad.estimator.classifier:MPADClassifier"
    return Entry(name, classifier, "mpad", "graphs", METHODS, True, True, {"variant": variant})


def _network(name: str, network: str, reads: Literal["graphs", "words", "trees"] = "words", **options: Any) -> Entry:
    return Entry(name, _NETWORK, name, reads, network=network, **options)


def _plain(name: str, home: str, probabilities: bool = True) -> Entry:
    return Entry(name, f"mpad.paper.baselines.{home}", name, probabilities=probabilities)


_ENTRIES = (
    _mpad("mpad", "mpad"),
    _mpad("mpad-sentence-att", "sentence-att"),
    _mpad("mpad-clique", "clique"),
    _mpad("mpad-path", "path"),
    _network("cnn", "cnn:CNN"),
    _network("dan", "dan:DAN"),
    _network("tree-lstm", "tree_lstm:TreeLSTM", "trees", parameters=_TREES),
    _network("drnn", "drnn:DRNN", "trees", parameters=_TREES),
    _network("lstmn", "lstmn:LSTMN"),
    _network("c-lstm", "c_lstm:CLSTM"),
    _network("disan", "disan:DiSAN"),
    _network("lstm-grnn", "lstm_grnn:LSTMGRNN"),
    _network("hn-att", "hn_att:HNATT", explained_by=("attention",)),
    _network("widemlp", "widemlp:WideMLP", ignores=("vectors",)),
    _network("texting", "texting:TextING", "graphs"),
    _plain("tfidf-svm", "tfidf_svm:TfidfSVM", probabilities=False),
    _plain("linear-stack", "linear_stack:LinearStack"),
    _plain("doc2vec", "doc2vec:Doc2Vec"),
    _plain("spgk", "spgk:SPGK", probabilities=False),
    _plain("wmd", "wmd:WMD", probabilities=False),
    _plain("fasttext", "fasttext:FastText"),
    _plain("minilm-lr", "minilm:MiniLM"),
    _plain("model2vec", "model2vec:Model2Vec"),
)
REGISTRY = {entry.name: entry for entry in _ENTRIES}


def find(name: str) -> Entry:
    """Return the system of that name."""
    if name not in REGISTRY:
        raise InputError(f"no model '{name}' (known: {', '.join(REGISTRY)})")
    return REGISTRY[name]


def find_kind(kind: str) -> Entry | None:
    """Return the system with that `kind`; None if there is none."""
    return next((entry for entry in _ENTRIES if entry.kind == kind), None)


def find_network(kind: str) -> tuple[Any, Any]:
    """Return the network class and configuration class of a baseline."""
    return import_module("mpad.paper.networks.baselines").find_baseline(kind)  # type: ignore[no-any-return]
