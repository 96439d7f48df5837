"""The front door: MPADClassifier, a scikit-learn estimator."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from mpad.config import DEFAULT_PRESET, MOST_MEMBERS, MPADConfig, TrainingConfig, Variant, find_preset
from mpad.data.labels import Labels, fit_thresholds
from mpad.data.streams import Columns
from mpad.ensemble import scale_logits
from mpad.errors import InputError
from mpad.estimator.text_classifier import (
    TextClassifier,
    TrainingData,
    check_memory,
    held_out_logits,
    trained_model,
)
from mpad.explain.explanation import DEFAULT, Explanation
from mpad.graph.build import GraphConfig
from mpad.inference.pipeline import Pipeline
from mpad.linear.fit import HeldOutFit, LinearData, fit_all, fit_linear_part, fit_temperature
from mpad.model import MPAD
from mpad.network import Network, find_device
from mpad.text.contextual import WORDS, Transformer, as_transformer
from mpad.text.distilled import AUTO
from mpad.text.tokenizer import Tokenizer
from mpad.text.vocabulary import Vocabulary
from mpad.training.progress import Sink
from mpad.training.stream_options import StreamOptions
from mpad.training.task import Task


class MPADClassifier(TextClassifier):
    """Document classifier: message passing over graphs of words, joined with a linear n-gram model.

    Parameters
    ----------
    variant : {"mpad", "sentence-att", "clique", "path"}, default="mpad"
        One graph per document, or one graph per sentence and a network over the sentences.
    preset : {"best", "paper", "authors"}, default="best"
        What does best on validation data, the paper's equations, or the network of the authors' published code.
    steps : int, default=2
        Rounds of message passing at each level.
    hidden : int, default=64
        Width of node states and document vectors.
    window : int, default=2
        Words are linked if they are less than this many positions apart.
    directed : bool, default=True
        Edges follow the order of the words.
    weighting : {"count", "distance"}, default="count"
        What a co-occurrence adds to an edge: 1, or 1 / distance.
    master_node : bool, default=True
        Link a master node to all words.
    master_skip : bool, default=True
        The master node's state bypasses attention.
    renormalise : bool, default=True
        Average over neighbors instead of summing.
    combine : {"gru", "identity"}, default="gru"
        "identity": a node's new state is its message.
    potentials : bool or "auto", default="auto"
        Join a linear n-gram model: a score for each word and word pair. "auto": as the preset says.
    members : int, default=1
        Networks that are trained separately, each with its own held-out part, and averaged. How far they differ says
        how certain a prediction is: `predict_proba(X, return_std=True)`.
    tokenizer : str or callable, default="auto"
        "auto" chooses by the letters of the documents: "kim" (the paper's, for ASCII) or "unicode-punctuation" (every
        script, emoji). Or one of these, "kim-cased", "unicode" (without commas and parentheses), or a function from a
        text to its words, which the name "module:function" can stand for.
    vectors : str, path, list of these, or None, default="auto"
        "auto": distilled from an installed sentence transformer (the extra "vectors"), otherwise learned. The name or
        folder of a Model2Vec or sentence-transformers model; a file of word vectors; "corpus": word2vec trained on X;
        several, concatenated; None: learned with the network.
    features : str or path, default="words"
        First state of a node. "words": the word's vector. "minilm", or the folder of a sentence transformer: the mean
        of the word's states in it, per document or sentence; slower by orders of magnitude, and not saved.
    vector_size : int, default=100
        Width of vectors that are learned or trained on X.
    extra_words : int, default=50000
        Words, or pieces of words, beyond those of X that the model keeps for new documents.
    min_count : int, default=1
        Words of X seen less often share the rows of unknown words.
    max_epochs : int or "auto", default="auto"
        Maximal number of epochs; by default that of the preset.
    patience : int, None or "auto", default="auto"
        Epochs without a better validation accuracy before stopping; by default that of the preset. None never stops.
    batch_size : int or "auto", default="auto"
        Documents per training step; by default that of the preset.
    learning_rate : float or "auto", default="auto"
        Learning rate of Adam; by default that of the preset.
    dropout : float, default=0.5
        Share of activations that are dropped in training.
    validation_fraction : float, default=0.1
        Share of X that is held out from the network. The default preset weights network and linear part on these
        documents, calibrates the probabilities with them, and then trains the linear part on them too; it chooses no
        epoch with them. The presets "paper" and "authors" choose the best epoch with them. Copies of a text are never
        split. With 0 nothing is held out: the parts have their usual weights, and the epoch that is best on X is kept.
    class_weight : None, "balanced" or dict, default=None
        Weight of each label in the loss.
    device : str, default="auto"
        "auto", or a torch device such as "cpu" or "cuda".
    random_state : int, RandomState or None, default=None
        An int makes results repeat, to the last bit on a CPU with the same number of threads; on a GPU sums may differ
        in their last digits.
    warm_start : bool, default=False
        Another `fit` continues from the fitted weights. Classes stay the same, and documents that the weights were
        trained on are not held out again.
    verbose : bool or "auto", default="auto"
        Show a progress bar (one line per epoch if there is no terminal), then the accuracies on held-out documents.
        "auto": on terminals and in notebooks.

    Attributes
    ----------
    classes_ : ndarray
        The labels, in the order of the columns of `predict_proba`.
    history_ : list
        One report per epoch.
    best_epoch_ : int
        The epoch whose weights were kept.
    n_iter_ : int
        Epochs run.
    held_out_ : HeldOutScores or None
        Scores on held-out documents, with intervals and the baselines; None if nothing was held out.
    held_out_accuracy_ : dict
        Accuracy on held-out documents of the model ("mpad"), of the baseline ("tfidf-svm", trained on the same
        documents as the network), and of the parts of a model with a linear part ("ngram-svm", "ngram-stack"). For
        multi-label data: the share of correct single decisions.
    answers_by_ : str
        "mpad", or the part ("ngram-svm", "ngram-stack") that predicts alone because it is clearly better on held-out
        documents.

    """

    def __init__(
        self,
        variant: Variant = "mpad",
        *,
        preset: str = DEFAULT_PRESET,
        steps: int = MPADConfig.steps,
        hidden: int = MPADConfig.hidden,
        window: int = GraphConfig.window,
        directed: bool = True,
        weighting: Literal["count", "distance"] = "count",
        master_node: bool = True,
        master_skip: bool = True,
        renormalise: bool = True,
        combine: Literal["gru", "identity"] = "gru",
        potentials: bool | Literal["auto"] = "auto",
        members: int = 1,
        tokenizer: str | Tokenizer | Callable[[str], Iterable[str]] = "auto",
        vectors: str | Path | Sequence[str | Path] | None = AUTO,
        features: str | Path = WORDS,
        vector_size: int = 100,
        extra_words: int = 50_000,
        min_count: int = 1,
        max_epochs: int | Literal["auto"] = "auto",
        patience: int | Literal["auto"] | None = "auto",
        batch_size: int | Literal["auto"] = "auto",
        learning_rate: float | Literal["auto"] = "auto",
        dropout: float = MPADConfig.dropout,
        validation_fraction: float = 0.1,
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
        device: str = "auto",
        random_state: int | np.random.RandomState | None = None,
        warm_start: bool = False,
        verbose: bool | Literal["auto"] = "auto",
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
        self.potentials = potentials
        self.members = members
        self.tokenizer = tokenizer
        self.vectors = vectors
        self.features = features
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
        self.warm_start = warm_start
        self.verbose = verbose

    def _training_config(self, seed: int, n_documents: int) -> TrainingConfig:
        settings = find_preset(self.preset).training_on(n_documents)
        for name in ("max_epochs", "patience", "batch_size", "learning_rate"):
            if getattr(self, name) != "auto":
                settings[name] = getattr(self, name)
        if settings.get("patience") is not None:
            settings["keep"] = "best"
        return TrainingConfig(seed=seed, **settings)

    def _make_network(self, n_classes: int, n_words: int, vector_width: int) -> MPAD:
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
            learn_vectors=self._learns_vectors,
            **find_preset(self.preset).network,
        )
        check_memory(sum(map(prod, config.tensor_shapes().values())))
        return MPAD(config)

    @property
    def _by_sentence(self) -> bool:
        return self.variant != "mpad"

    def _make_model(self, tokenizer: Tokenizer, vocabulary: Vocabulary, network: Network, labels: Labels) -> Pipeline:
        graph_config = GraphConfig(self.window, self.directed, self.weighting)
        transformer = self._transformer
        if transformer is not None:
            network = network.to(find_device(self.device))  # where the transformer runs, too
        return Pipeline(tokenizer, vocabulary, graph_config, network, labels, transformer=transformer)

    @property
    def _transformer(self) -> Transformer | None:
        return as_transformer(self.features)

    @property
    def _members(self) -> int:
        members = self.members
        if isinstance(members, bool) or not isinstance(members, (int, np.integer)) or not 1 <= members <= MOST_MEMBERS:
            raise InputError(f"members must be a whole number from 1 to {MOST_MEMBERS}, not {members!r}")
        return int(members)

    def _complete(
        self, model: Pipeline, data: TrainingData, tasks: Sequence[Task], seed: int, train_on_held: bool = True
    ) -> tuple[Pipeline, HeldOutFit]:
        seen, held, logits = held_out_logits(model, tasks, data)
        model = trained_model(model, tasks)
        fitted = None
        if self._wants_potentials:
            fitted = fit_linear_part(linear_data(model, data), seen, held, logits, seed, train_on_held)
        return calibrate(model, fitted, logits, data.targets[held])

    def _refit(
        self, model: Pipeline, fitted: HeldOutFit, data: TrainingData, tasks: Sequence[Task], seed: int
    ) -> Pipeline:
        model = trained_model(model, tasks)
        if fitted.part_weights is None:
            scale_logits(model.network, 1 / (fitted.temperature or 1.0))
            return model
        return replace(model, potentials=fit_all(linear_data(model, data), fitted.part_weights, seed))

    @property
    def _wants_potentials(self) -> bool:
        return find_preset(self.preset).potentials if self.potentials == "auto" else self.potentials

    def fit_stream(
        self,
        data: Any,
        *,
        text: str | None = None,
        label: str | Sequence[str] | None = None,
        separator: str | None = None,
        options: StreamOptions | None = None,
        sink: Sink | None = None,
        checkpoint: str | Path | None = None,
        resume: bool = False,
        keep_interrupted: bool = False,
    ) -> Self:
        """Train on documents that need not fit into memory: Parquet, CSV, JSON lines, or a Hugging Face dataset.

        Parameters
        ----------
        data : str, path or datasets.Dataset
            A file, a pattern such as "corpus/*.parquet", or a dataset.
        text, label, separator : str or None, default=None
            Columns and separator, as in `read_documents`.
        options : StreamOptions or None, default=None
            Cache folder for packed graphs, processes, window size.
        sink, checkpoint, resume, keep_interrupted
            As in `fit`.

        Returns
        -------
        self
            If `torchrun` has started several processes, each trains on its share, and all end with the same model.

        """
        from mpad.estimator.out_of_core import fit_stream  # here: most never need it

        named = label if label is None or isinstance(label, str) else tuple(label)
        columns = Columns(text, named, separator)
        fit_stream(self, data, columns, options or StreamOptions(), sink, checkpoint, resume, keep_interrupted)
        return self

    def explain(self, text: str, label: Any = None, method: str = DEFAULT, unit: str = "occurrence") -> Explanation:
        """Explain a prediction: return a weight for every word, word pair and sentence.

        Parameters
        ----------
        text : str
            The document.
        label : object, default=None
            Class to explain; by default the predicted one.
        method : {"gradients", "occlusion", "attention"}, default="gradients"
            "gradients": contribution to the class's log-odds, integrated from an empty document to this one;
            "occlusion": the drop in log-odds without the part; "attention": where the network looked.
        unit : {"occurrence", "word"}, default="occurrence"
            Occlusion removes one occurrence of a word at a time, or all of them, which then share the weight.

        Returns
        -------
        Explanation
            If node features come from a transformer, its states stay fixed: the network's use of them is explained.

        Examples
        --------
        >>> model.explain("not bad at all").show()                              # doctest: +SKIP

        """
        from mpad.explain import explain  # here, so that answering does not wait for it

        check_is_fitted(self)
        return explain(self.model_, text, label, method, unit=unit)


def linear_data(model: Pipeline, data: TrainingData) -> LinearData:
    """Return the training data as the linear part reads it."""
    words, n_classes = model.vocabulary.words, len(model.labels)
    vectors = linear_vectors(model)
    return LinearData(data.packed, data.targets, data.weights, n_classes, len(words), vectors, words, data.groups)


def linear_vectors(model: Pipeline) -> NDArray[np.floating]:
    """Return the word vectors that the linear part averages; no columns if the network learned them."""
    vectors: NDArray[np.float32] = model.network.vectors.detach().cpu().numpy()
    return vectors[:, :0] if model.network.config.learn_vectors else vectors.astype(np.float16)


def calibrate(
    model: Pipeline, fitted: HeldOutFit | None, logits: NDArray[np.floating], targets: NDArray[Any]
) -> tuple[Pipeline, HeldOutFit]:
    """Return the model with its linear part, or else calibrated by a temperature; with thresholds if it is multi-label.

    `logits` are those of the network for held-out documents with these targets.
    """
    if fitted is not None:
        model = replace(model, potentials=fitted.potentials)
    else:
        factor = fit_temperature(logits, targets)
        scale_logits(model.network, factor)
        fitted = HeldOutFit(logits=factor * logits, temperature=1 / factor)
    if model.labels.multilabel and fitted.logits is not None:
        thresholds = fit_thresholds(model.labels.probabilities(fitted.logits), targets)
        model = replace(model, labels=replace(model.labels, thresholds=thresholds))
    return model, fitted
