"""The front door: MPADClassifier, a scikit-learn estimator."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from mpad.config import MPADConfig, Variant
from mpad.data.labels import Labels
from mpad.data.streams import Columns
from mpad.ensemble import scale_logits
from mpad.estimator.members import TrainingData, check_members, held_out_logits, trained_model
from mpad.estimator.presets import DEFAULT_PRESET, find_preset
from mpad.estimator.text_classifier import TextClassifier
from mpad.explain.explanation import DEFAULT, Explanation
from mpad.graph.build import GraphConfig
from mpad.linear.fit import fit_linear_part, refit_linear_part
from mpad.linear.mixture import HeldOutFit
from mpad.model import MPAD
from mpad.network import Network
from mpad.pipeline.document_model import DocumentModel, calibrate
from mpad.pipeline.text_model import TextModel
from mpad.text.contextual import WORDS, Transformer, as_transformer
from mpad.text.distilled import AUTO
from mpad.text.tokenizer import Tokenizer
from mpad.text.vocabulary import Vocabulary
from mpad.training.config import TrainingConfig
from mpad.training.device import find_device
from mpad.training.progress import Sink
from mpad.training.stream_options import StreamOptions
from mpad.training.task import Task


class MPADClassifier(TextClassifier):
    """Classifies documents by passing messages over their graphs of words.

    Parameters
    ----------
    variant : {"mpad", "sentence-att", "clique", "path"}
        A graph a document, or a graph a sentence and a network over the sentences.
    preset : {"best", "paper", "authors"}
        What does best on validation data, the paper's equations, or the network of the authors' published code.
    steps : int
        Rounds of messages at each level.
    hidden : int
        Width of node states and document vectors.
    window : int
        Words that co-occur stand less than this many places apart.
    directed : bool
        Whether edges point with the text.
    weighting : {"count", "distance"}
        What a co-occurrence adds to an edge: 1, or 1 / distance.
    master_node : bool
        Whether a node is linked to all words.
    master_skip : bool
        Whether the master node's state bypasses attention.
    renormalise : bool
        Average over neighbours, or sum.
    combine : {"gru", "identity"}
        "identity": a node's state is its message alone.
    potentials : bool or "auto"
        Whether a linear part stands beside the network, a score for each word and pair of words. "auto": as the preset
        says.
    members : int
        Networks that are trained apart, each with a held-out part of its own, and answer together: the mean of their
        logits. How far they differ says how sure an answer is: `predict_proba(X, return_std=True)`.
    tokenizer : str or callable
        "auto": by the letters of X, "kim" (the paper's, for ASCII) or "unicode-punctuation" (every script, emoji); one
        of these, "kim-cased", "unicode" (without commas and parentheses), or a function from a text to its words.
    vectors : str, path, list of these, or None
        "auto": distilled from a sentence transformer that is installed (the extra "vectors"), else learnt. The name or
        folder of a Model2Vec or sentence-transformers model; a file of word vectors; "corpus": word2vec trained on X;
        several, side by side; None: learnt with the network.
    features : str or path
        What a node starts from. "words": its word's vector. "minilm", or a sentence transformer's folder: the mean of
        the word's states in that, in this document (or sentence): slower by orders of magnitude, and not saved.
    vector_size : int
        Width of vectors that are learnt or trained on X.
    extra_words : int
        Words, or pieces of words, beyond those of X, that the model keeps for documents to come.
    min_count : int
        Words of X seen less often share the rows of unknown words.
    max_epochs : int or "auto"
        Epochs at most. "auto", here and below: as the preset says.
    patience : int, None or "auto"
        Epochs without a better validation accuracy before stopping; None: never.
    batch_size : int or "auto"
        Documents a step.
    learning_rate : float or "auto"
        Adam's.
    dropout : float
        Share of activations that are dropped while training.
    validation_fraction : float
        Share of X that is held out from the network. The default preset weighs network and linear part on these
        documents, which also calibrates the probabilities, and then trains the linear part on them too; it chooses no
        epoch with them. The presets "paper" and "authors" choose the best epoch with them. Copies of a text are never
        split. With 0 nothing is held out: parts have their usual weights, and the epoch that is best on X is kept.
    class_weight : None, "balanced" or dict
        Weight of each label in the loss.
    device : str
        "auto", or a torch device such as "cpu" or "cuda".
    random_state : int, RandomState or None
        An int for results that repeat, to the last bit on a CPU with the same number of threads (torch's sums, and
        ours, depend on how many share them); on a GPU sums may differ in their last digits.
    warm_start : bool
        Whether another `fit` goes on from the weights that are there. Classes stay the same, and documents that they
        were learnt from are not held out again.
    verbose : bool or "auto"
        Whether to show a bar, or a line an epoch where there is no terminal, and then the accuracies on held-out
        documents. "auto": on terminals and in notebooks.

    Attributes
    ----------
    classes_ : ndarray
        The labels, in the order of the columns of `predict_proba`.
    history_ : list
        One report an epoch.
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
        return MPAD(
            MPADConfig(
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
        )

    @property
    def _by_sentence(self) -> bool:
        return self.variant != "mpad"

    def _make_model(
        self, tokenizer: Tokenizer, vocabulary: Vocabulary, network: Network, labels: Labels
    ) -> DocumentModel:
        assert isinstance(network, MPAD)
        graph_config = GraphConfig(self.window, self.directed, self.weighting)
        transformer = self._transformer
        if transformer is not None:
            network = network.to(find_device(self.device))  # where the transformer runs, too
        return DocumentModel(tokenizer, vocabulary, graph_config, network, labels, transformer=transformer)

    @property
    def _transformer(self) -> Transformer | None:
        return as_transformer(self.features)

    @property
    def _members(self) -> int:
        return check_members(self.members)

    def _complete(
        self, model: TextModel, data: TrainingData, tasks: Sequence[Task], seed: int, train_on_held: bool = True
    ) -> tuple[TextModel, HeldOutFit]:
        seen, held, logits = held_out_logits(model, tasks, data.packed)
        model = trained_model(model, tasks)
        assert isinstance(model, DocumentModel)
        fitted = None
        if self._wants_potentials:
            documents = np.concatenate([seen, held])
            fitted = fit_linear_part(
                data.packed,
                documents,
                data.targets[documents],
                data.weights[documents],
                len(model.labels),
                model.vocabulary.words,
                _linear_vectors(model),
                np.arange(len(seen), len(documents)),
                logits,
                seed,
                None if data.groups is None else data.groups[documents],
                train_on_held,
            )
        return calibrate(model, fitted, logits, data.targets[held])

    def _refit(
        self, model: TextModel, fitted: HeldOutFit, data: TrainingData, tasks: Sequence[Task], seed: int
    ) -> TextModel:
        model = trained_model(model, tasks)
        assert isinstance(model, DocumentModel)
        if fitted.part_weights is None:
            scale_logits(model.network, 1 / (fitted.temperature or 1.0))
            return model
        labels, words = len(model.labels), model.vocabulary.words
        known = (
            data.targets,
            data.weights,
            labels,
            words,
            _linear_vectors(model),
            fitted.part_weights,
            seed,
            data.groups,
        )
        return replace(model, potentials=refit_linear_part(data.packed, *known))

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
        """Learn from documents that need not fit into memory: Parquet, CSV, JSON lines, or a Hugging Face dataset.

        `data` is a file, a pattern such as "corpus/*.parquet", or a `datasets.Dataset`; `text`, `label` and `separator`
        name its columns as in `read_documents`. Packed graphs are kept on disk. Where `torchrun` has started several
        processes, each learns from its share, and all end with the same model. `keep_interrupted`: as of `fit`.
        """
        from mpad.estimator.out_of_core import fit_stream  # here: most never need it

        named = label if label is None or isinstance(label, str) else tuple(label)
        columns = Columns(text, named, separator)
        fit_stream(self, data, columns, options or StreamOptions(), sink, checkpoint, resume, keep_interrupted)
        return self

    def explain(self, text: str, label: Any = None, method: str = DEFAULT, unit: str = "occurrence") -> Explanation:
        """Say why: a weight for every word, pair of words and sentence.

        `label` is the class to explain, by default the predicted one. By "gradients" a weight is a part's share of how
        far the class's log-odds rise while the document fades in, by "occlusion" how far they fall without
        the part, by "attention" where the network looked. Occlusion takes out one "occurrence" of a word at a time,
        or with `unit="word"` all of them, which then share the weight. Where features come from a transformer, their
        states in the whole text stay as they are: it is the network's use of them that is explained.
        """
        from mpad.explain import explain  # here, so that answering does not wait for it

        check_is_fitted(self)
        return explain(self.model_, text, label, method, unit=unit)


def _linear_vectors(model: DocumentModel) -> NDArray[np.floating]:
    """Return the word vectors that the linear part averages; no columns if the network learned them."""
    vectors: NDArray[np.float32] = model.network.vectors.detach().cpu().numpy()
    return vectors[:, :0] if model.network.config.learn_vectors else vectors.astype(np.float16)
