"""The front door: MPADClassifier, a scikit-learn estimator."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from mpad.estimators.linear_part import LinearPart, fit_linear_part, fit_temperature
from mpad.estimators.presets import DEFAULT_PRESET, find_preset
from mpad.estimators.text_classifier import TextClassifier
from mpad.explain.explanation import DEFAULT, Explanation
from mpad.graph.build import GraphConfig
from mpad.graph.packed import PackedGraphs
from mpad.labels import Labels
from mpad.models.mpad import MPAD
from mpad.models.network import Network
from mpad.nn.config import MPADConfig, Variant
from mpad.pipeline.document_model import DocumentModel
from mpad.pipeline.text_model import TextModel
from mpad.text.distilled import AUTO
from mpad.text.tokenizer import Tokenizer
from mpad.text.vocabulary import Vocabulary
from mpad.training.config import TrainingConfig


class MPADClassifier(TextClassifier):
    """Classifies documents by passing messages over their graphs of words.

    Parameters
    ----------
    variant : "mpad" (a graph a document), or "sentence-att", "clique", "path" (a graph a sentence)
    preset : "best" (what does best on validation data), "paper" (the paper's equations) or "authors" (their published
        code's network)
    steps : rounds of messages at each level
    hidden : width of node states and document vectors
    window : words that co-occur stand less than this many places apart
    directed, weighting : whether edges point with the text; what a co-occurrence adds, "count" or "distance"
    master_node, master_skip : a node linked to all words; whether its state bypasses attention
    renormalise : average over neighbours (True) or sum (False)
    combine : "gru", or "identity": a node's state is its message alone
    tokenizer : "kim", "kim-cased", "unicode", or a function from a text to its words
    potentials : whether a linear part stands beside the network, a score for each word and pair of words; "auto": as
        the preset says
    vectors : "auto": distilled from a sentence transformer that is installed (the extra "vectors"), else learnt; the
        name or folder of a Model2Vec or sentence-transformers model; a file of word vectors; "corpus": word2vec
        trained on X; a list of these, side by side; None: learnt with the network
    vector_size : width of vectors that are learnt or trained on X
    extra_words : words, or pieces of words, beyond those of X, that the model keeps for documents to come
    min_count : words of X seen less often share the rows of unknown words
    max_epochs, patience : epochs at most; epochs without a better validation accuracy before stopping, or None; "auto":
        as the preset says
    batch_size, learning_rate, dropout : as usual; "auto": as the preset says
    validation_fraction : share of X held out to choose the best epoch, and what network and linear part count; 0 keeps
        the epoch best on X itself
    class_weight : None, "balanced", or a dict from label to weight
    device : "auto", or a torch device such as "cpu" or "cuda"
    random_state : an int for results that repeat, to the last bit on a CPU with the same number of threads (torch's
        sums, and ours, depend on how many share them); on a GPU sums may differ in their last digits
    verbose : a line an epoch on standard error

    Attributes
    ----------
    classes_ : the labels, in the order of the columns of `predict_proba`
    history_ : one report an epoch
    best_epoch_, n_iter_ : the epoch whose weights were kept; epochs run
    held_out_accuracy_ : on held-out documents, of the model ("mpad") and of what it was compared with; a model with
        potentials has these alone
    answers_by_ : "mpad", or "tfidf-svm" or "linear-stack" where that alone is clearly better on held-out documents

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
        tokenizer: str | Tokenizer | Callable[[str], Iterable[str]] = "kim",
        vectors: str | Path | Sequence[str | Path] | None = AUTO,
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
        self.potentials = potentials
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
        return DocumentModel(tokenizer, vocabulary, graph_config, network, labels)

    def _complete(
        self,
        model: TextModel,
        packed: PackedGraphs,
        targets: NDArray[Any],
        weights: NDArray[np.float32],
        chosen: NDArray[np.int64],
        held: NDArray[np.int64],
        seed: int,
    ) -> tuple[TextModel, LinearPart | None]:
        wanted = find_preset(self.preset).potentials if self.potentials == "auto" else self.potentials
        assert isinstance(model, DocumentModel)
        documents = np.concatenate([chosen, held])
        network = model.network_logits(packed, held)
        if not wanted:
            model.network.scale_logits(fit_temperature(network, targets[held]))
            return model, None
        vectors = model.network.vectors.detach().cpu().numpy()
        part = fit_linear_part(
            packed,
            documents,
            targets[documents],
            weights[documents],
            len(model.labels),
            model.vocabulary.seen,
            vectors[:, :0] if model.network.config.learn_vectors else vectors.astype(np.float16),
            np.arange(len(chosen), len(documents)),
            network,
            seed,
        )
        return replace(model, potentials=part.potentials), part

    def explain(self, text: str, label: Any = None, method: str = DEFAULT) -> Explanation:
        """Say why: a weight for every word, pair of words and sentence.

        `label` is the class to explain, by default the predicted one. By "gradients" a weight is a part's share of how
        far the class's log-odds rise while the document fades in, by "occlusion" how far they fall without
        the part, by "attention" where the network looked.
        """
        from mpad.explain import explain  # here, so that answering does not wait for it

        check_is_fitted(self)
        return explain(self.model_, text, label, method)
