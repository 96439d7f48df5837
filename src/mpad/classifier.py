"""The front door: MPADClassifier, a scikit-learn estimator."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mpad.document_model import DocumentModel
from mpad.errors import InputError
from mpad.explain.explanation import Explanation
from mpad.graph.batch import CorpusTensors
from mpad.graph.build import GraphConfig, build_graphs
from mpad.graph.packed import PackedGraphs
from mpad.inputs import as_seed, as_texts, as_validation, as_weights
from mpad.labels import Labels, as_labels, learn_labels
from mpad.models.config import MPADConfig, Variant
from mpad.models.mpad import MPAD
from mpad.presets import find_preset
from mpad.store import as_json, load_model, save_model
from mpad.text.tokenizer import Tokenizer, as_tokenizer
from mpad.text.vectors import CORPUS, WordVectors, load_vectors, random_vectors, train_vectors
from mpad.text.vocabulary import Vocabulary, learn_vocabulary
from mpad.training.device import find_device
from mpad.training.examples import make_examples
from mpad.training.holdout import hold_out
from mpad.training.loop import History, train
from mpad.training.progress import Sink, silent, to_stderr
from mpad.training.task import Task, TrainingConfig
from mpad.version import __version__


class MPADClassifier(ClassifierMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Classifies documents by passing messages over their graphs of words.

    Parameters
    ----------
    variant : "mpad" (a graph a document), or "sentence-att", "clique", "path" (a graph a sentence)
    preset : "paper" (the paper's equations) or "authors" (their published code's network)
    steps : rounds of messages at each level
    hidden : width of node states and document vectors
    window : words that co-occur stand less than this many places apart
    directed, weighting : whether edges point with the text; what a co-occurrence adds, "count" or "distance"
    master_node, master_skip : a node linked to all words; whether its state bypasses attention
    renormalise : average over neighbours (True) or sum (False)
    combine : "gru", or "identity": a node's state is its message alone
    tokenizer : "kim", "kim-cased", "unicode", or a function from a text to its words
    vectors : a file of word vectors; "corpus": word2vec trained on X; None: learnt with the network
    vector_size : width of the vectors when there is no file
    extra_words : words of the vector file, beyond those of X, that the model keeps for documents to come
    min_count : words of X seen less often share the rows of unknown words
    max_epochs, patience : epochs at most; epochs without a better validation accuracy before stopping, or None
    batch_size, learning_rate, dropout : as usual
    validation_fraction : share of X held out to choose the best epoch; 0 keeps the epoch best on X itself
    class_weight : None, "balanced", or a dict from label to weight
    device : "auto", or a torch device such as "cpu" or "cuda"
    random_state : an int for results that repeat (on a GPU sums may differ in their last digits)
    verbose : a line an epoch on standard error

    Attributes
    ----------
    classes_ : the labels, in the order of the columns of `predict_proba`
    history_ : one report an epoch
    best_epoch_, n_iter_ : the epoch whose weights were kept; epochs run

    """

    def __init__(
        self,
        variant: Variant = "mpad",
        *,
        preset: str = "paper",
        steps: int = 2,
        hidden: int = 64,
        window: int = 2,
        directed: bool = True,
        weighting: Literal["count", "distance"] = "count",
        master_node: bool = True,
        master_skip: bool = True,
        renormalise: bool = True,
        combine: Literal["gru", "identity"] = "gru",
        tokenizer: str | Tokenizer | Callable[[str], Iterable[str]] = "kim",
        vectors: str | Path | None = None,
        vector_size: int = 100,
        extra_words: int = 50_000,
        min_count: int = 1,
        max_epochs: int = 200,
        patience: int | None = 20,
        batch_size: int = 128,
        learning_rate: float = 0.001,
        dropout: float = 0.5,
        validation_fraction: float = 0.1,
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
        device: str = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
    ) -> None:
        self.variant = variant
        self.preset = preset
        self.steps = steps
        self.hidden = hidden
        self.window = window
        self.directed = directed
        self.weighting = weighting
        self.master_node = master_node
        self.master_skip = master_skip
        self.renormalise = renormalise
        self.combine = combine
        self.tokenizer = tokenizer
        self.vectors = vectors
        self.vector_size = vector_size
        self.extra_words = extra_words
        self.min_count = min_count
        self.max_epochs = max_epochs
        self.patience = patience
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.dropout = dropout
        self.validation_fraction = validation_fraction
        self.class_weight = class_weight
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: Iterable[str],
        y: Any,
        sample_weight: Any = None,
        *,
        validation: tuple[Iterable[str], Any] | None = None,
        sink: Sink | None = None,
    ) -> Self:
        """Learn from texts X and labels y, or a binary indicator matrix y for many labels a document.

        `validation`, texts and labels, chooses the best epoch instead of a held-out part of X. `sink` is called
        with an EpochReport after every epoch. Ctrl-C ends training and keeps the best epoch so far.
        """
        texts, y = as_texts(X), as_labels(y)
        if len(texts) != len(y):
            raise InputError(f"X has {len(texts):,} documents but y has {len(y):,} labels")
        labels = learn_labels(y)
        targets = labels.encode(y)
        weights = labels.weights(self.class_weight, targets) * as_weights(sample_weight, len(texts))
        seed = as_seed(self.random_state)
        training = self._training_config(seed)
        device = find_device(self.device)
        model, graphs = self._build(texts, labels, seed)
        if validation is None:
            chosen, held = hold_out(targets, self.validation_fraction, seed)
        else:
            checked, truth = as_validation(validation, labels)
            chosen, held = np.arange(len(texts)), np.arange(len(texts), len(texts) + len(checked))
            texts, targets = texts + checked, np.concatenate([targets, truth])
            weights = np.concatenate([weights, np.ones(len(checked), np.float32)])
            graphs = model.pack(texts)
        corpus = CorpusTensors(graphs, device)
        examples = make_examples(corpus, chosen, targets, weights)
        checks = make_examples(corpus, held, targets) if len(held) else None
        task = Task(model.network.to(device), examples, checks, training)
        (history,) = train([task], sink or (to_stderr if self.verbose else silent))
        self._remember(model, history)
        return self

    def _training_config(self, seed: int) -> TrainingConfig:
        schedule = find_preset(self.preset).schedule
        return TrainingConfig(self.max_epochs, self.patience, self.batch_size, self.learning_rate, schedule, seed)

    def _build(
        self, texts: list[str], labels: Labels, seed: int, vectors_from: NDArray[np.int64] | None = None
    ) -> tuple[DocumentModel, PackedGraphs]:
        """Make an untrained model that can read these texts, and their graphs.

        Vectors of the corpus are learnt from all its texts, or from the rows `vectors_from` alone.
        """
        tokenizer = as_tokenizer(self.tokenizer)
        by_sentence = self.variant != "mpad"
        vocabulary, corpus = learn_vocabulary(texts, tokenizer, by_sentence, self.min_count)
        source = texts if vectors_from is None else [texts[row] for row in vectors_from]
        vectors = self._word_vectors(source, tokenizer, vocabulary, seed)
        network = self._network(len(labels), len(vectors.rows), vectors.width, seed)
        rows = torch.from_numpy(vectors.rows)
        with torch.no_grad():  # rounded as they will be saved, so that a loaded model gives the same answers
            network.vectors.copy_(rows if network.config.learn_vectors else rows.half())
        graph_config = GraphConfig(self.window, self.directed, self.weighting)
        graphs = build_graphs(corpus.with_vocabulary_grown(len(vocabulary), len(vectors.vocabulary)), graph_config)
        return DocumentModel(tokenizer, vectors.vocabulary, graph_config, network, labels), graphs

    def _network(self, n_classes: int, n_words: int, vector_width: int, seed: int) -> MPAD:
        """Make an untrained network, its word vectors still empty."""
        config = MPADConfig(
            n_classes=n_classes,
            vector_width=vector_width,
            n_words=n_words,
            variant=self.variant,
            steps=self.steps,
            hidden=self.hidden,
            master_node=self.master_node,
            master_skip=self.master_skip,
            renormalise=self.renormalise,
            combine=self.combine,
            dropout=self.dropout,
            authors=find_preset(self.preset).authors,
            learn_vectors=self.vectors is None,
        )
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return MPAD(config)

    def _word_vectors(self, texts: list[str], tokenizer: Tokenizer, vocabulary: Vocabulary, seed: int) -> WordVectors:
        if self.vectors is None:
            return random_vectors(vocabulary, self.vector_size, seed)
        if self.vectors == CORPUS:
            return train_vectors(texts, tokenizer, vocabulary, self.vector_size, seed)
        return load_vectors(self.vectors, vocabulary, self.extra_words, seed)

    def _remember(self, model: DocumentModel, history: History) -> None:
        self.model_ = model
        self.classes_ = model.labels.classes
        self.history_ = history.reports
        self.best_epoch_ = history.best_epoch
        self.n_iter_ = len(history.reports)
        self.interrupted_ = history.interrupted

    def decision_function(self, X: Iterable[str]) -> NDArray[np.float32]:
        """Scores before softmax or sigmoid: (n, n_classes); of two classes, the second's lead over the first: (n,)."""
        check_is_fitted(self)
        logits = self.model_.logits(as_texts(X))
        if len(self.classes_) == 2 and not self.model_.labels.multilabel:
            return np.asarray(logits[:, 1] - logits[:, 0])
        return logits

    def predict_proba(self, X: Iterable[str]) -> NDArray[np.float64]:
        """Probability of each class: (n, n_classes)."""
        check_is_fitted(self)
        return self.model_.probabilities(as_texts(X))

    def predict(self, X: Iterable[str]) -> NDArray[Any]:
        """Label of each document: (n,), or indicators (n, n_classes) for many labels a document."""
        check_is_fitted(self)
        return self.model_.labels.decide(self.model_.logits(as_texts(X)))

    def transform(self, X: Iterable[str]) -> NDArray[np.float32]:
        """Vector of each document, as the last layer sees it: (n, hidden)."""
        check_is_fitted(self)
        texts = as_texts(X)
        if not texts:
            return np.zeros((0, self.hidden), np.float32)
        return self.model_.answer(self.model_.pack(texts)).vectors

    def explain(self, text: str, label: Any = None, method: str = "occlusion") -> Explanation:
        """Say why: a weight for every word, pair of words and sentence of the text.

        `label` is the class to explain, by default the predicted one. "occlusion" measures what the answer would
        be without each part; "attention" reads the network's own weights, which is fast but says where it looked,
        not what moved the answer.
        """
        from mpad.explain import explain  # here, so that answering does not wait for it

        check_is_fitted(self)
        return explain(self.model_, text, label, method)

    def save(self, folder: str | Path) -> None:
        """Write the fitted model to a folder (config.json, vocabulary.json, model.safetensors)."""
        check_is_fitted(self)
        parameters = {name: as_json(value) for name, value in self.get_params(deep=False).items()}
        save_model(self.model_, {**parameters, "best_epoch_": self.best_epoch_}, folder, __version__)

    @classmethod
    def load(
        cls,
        folder: str | Path,
        device: str = "auto",
        tokenizer: str | Tokenizer | Callable[[str], Iterable[str]] | None = None,
    ) -> Self:
        """Read a fitted model; `tokenizer` hands in a function that cannot be imported by name here."""
        model, parameters = load_model(folder, find_device(device), tokenizer)
        known = set(cls().get_params(deep=False))
        estimator = cls(**{name: value for name, value in parameters.items() if name in known})
        estimator.tokenizer = model.tokenizer.name if tokenizer is None else tokenizer
        estimator._remember(model, History([], int(parameters.get("best_epoch_", 0)), interrupted=False))
        return estimator

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.classifier_tags.multi_label = True
        tags.non_deterministic = self.random_state is None
        return tags
