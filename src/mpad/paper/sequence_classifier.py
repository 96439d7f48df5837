"""SequenceClassifier: the baselines that read words in order, as scikit-learn estimators."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mpad.config import TrainingConfig
from mpad.data.labels import Labels
from mpad.errors import InputError
from mpad.estimator.classifier import TextClassifier, check_memory
from mpad.explain.explanation import Explanation
from mpad.graph.build import GraphConfig
from mpad.network import Network
from mpad.paper.networks.baselines import baseline_options, find_baseline
from mpad.paper.networks.config import NetworkConfig
from mpad.sequence.pipeline import SequencePipeline
from mpad.text.tokenizer import Tokenizer
from mpad.text.vocabulary import Vocabulary


@dataclass(eq=False, repr=False)
class SequenceClassifier(TextClassifier):
    """Classifies documents by one of the networks that the paper compares MPAD with.

    Parameters
    ----------
    model : the network's name, such as "cnn", "dan" or "hn-att" (`mpad.paper.networks.baselines.BASELINES`)
    options : what that network alone has, such as {"maps": 50} for "cnn"; by default as in its paper
    learn_vectors : whether the vectors of a file are trained further; without a file they are learnt in any case

    All others are those of MPADClassifier, and mean the same.

    """

    model: str = "cnn"
    _: KW_ONLY
    options: Mapping[str, Any] | None = None
    tokenizer: str | Tokenizer | Callable[[str], Iterable[str]] = "auto"
    vectors: str | Path | None = None
    vector_size: int = 100
    learn_vectors: bool = False
    extra_words: int = 50_000
    min_count: int = 1
    max_epochs: int = TrainingConfig.max_epochs
    patience: int | None = TrainingConfig.patience
    batch_size: int = 64
    learning_rate: float = TrainingConfig.learning_rate
    dropout: float = NetworkConfig.dropout
    validation_fraction: float = 0.1
    class_weight: Mapping[Any, float] | Literal["balanced"] | None = None
    device: str = "auto"
    random_state: int | np.random.RandomState | None = None
    verbose: bool | Literal["auto"] = "auto"

    def _training_config(self, seed: int, n_documents: int) -> TrainingConfig:
        names = "max_epochs", "patience", "batch_size", "learning_rate"
        settings: dict[str, Any] = {name: getattr(self, name) for name in names}
        return TrainingConfig(**settings, seed=seed, by_length=True)

    @property
    def _by_sentence(self) -> bool:
        return find_baseline(self.model)[0].by_sentence

    def _make_network(self, n_classes: int, n_words: int, vector_width: int) -> Network:
        network, config = find_baseline(self.model)
        options = dict(self.options or {})
        unknown = sorted(set(options) - baseline_options(self.model))
        if unknown:
            known = ", ".join(sorted(baseline_options(self.model))) or "it has none"
            raise InputError(f"'{self.model}' has no option {', '.join(unknown)} (known: {known})")
        learnt = self.learn_vectors or self._learns_vectors
        check_memory(n_words * vector_width)
        return network(config(n_classes, vector_width, n_words, self.dropout, learnt, **options))

    def explain(self, text: str, label: Any = None, method: str = "attention") -> Explanation:
        """Say where the network looked: a weight for every word and sentence, where it has attention ("hn-att")."""
        from mpad.explain import explain  # here, so that answering does not wait for it

        check_is_fitted(self)
        return explain(self.model_, text, label, method)

    def _make_model(
        self, tokenizer: Tokenizer, vocabulary: Vocabulary, network: Network, labels: Labels
    ) -> SequencePipeline:
        graph = network.graph or GraphConfig()
        return SequencePipeline(tokenizer, vocabulary, graph, network, labels, kind=self.model)
