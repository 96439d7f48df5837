"""A model before its training: words, their vectors, and a network's first weights."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.overrides import TorchFunctionMode

from mpad.data.inspection import warn_of_words
from mpad.data.labels import Labels
from mpad.errors import InputError
from mpad.estimator.warm_start import earlier_model
from mpad.network import Network
from mpad.pipeline.text_model import TextModel
from mpad.text.tokenizer import Tokenizer, as_tokenizer
from mpad.text.vectors import WordVectors, make_vectors, random_vectors
from mpad.text.vocabulary import Vocabulary, learn_vocabulary

if TYPE_CHECKING:
    from mpad.estimator.text_classifier import TextClassifier


def untrained_model(
    estimator: "TextClassifier",
    texts: list[str],
    labels: Labels,
    seed: int,
    vectors_from: NDArray[np.int64] | None = None,
    also: Sequence[str] = (),
) -> tuple[TextModel, Any]:
    """Make an untrained model that can read these texts, and the texts as it reads them.

    Vectors of the corpus are learnt from all its texts, or from the rows `vectors_from` alone. Words of the texts
    `also` have rows of their own too, where these are not learnt.
    """
    earlier = earlier_model(estimator)
    tokenizer = as_tokenizer(estimator.tokenizer, texts) if earlier is None else earlier.tokenizer
    learnt, corpus = learn_vocabulary(texts, tokenizer, estimator._by_sentence, estimator.min_count)
    warn_of_words(texts, corpus, tokenizer)
    others = learn_vocabulary(also, tokenizer)[0].words if len(also) and not estimator._learns_vectors else ()
    source = texts if vectors_from is None else [texts[row] for row in vectors_from]
    model = model_of_words(estimator, tokenizer, learnt.with_words(others), labels, seed, source)
    return model, model.packed(corpus.shift_spare_rows(len(learnt), len(model.vocabulary)), texts)


def model_of_words(
    estimator: "TextClassifier",
    tokenizer: Tokenizer,
    vocabulary: Vocabulary,
    labels: Labels,
    seed: int,
    texts: list[str],
) -> TextModel:
    """Make an untrained model that knows these words, and those that come with its vectors."""
    vectors = _word_vectors(estimator, texts, tokenizer, vocabulary, seed)
    by_vectors = bool(estimator._vector_sources) and estimator._transformer is None
    estimator.known_words_ = (vectors.covered, len(vocabulary)) if by_vectors else None
    network = untrained_network(estimator, len(labels), len(vectors.rows), vectors.width, seed)
    rows = torch.from_numpy(vectors.rows)  # rounded as they will be saved: a loaded model gives the same answers
    network.set_vectors(rows if network.config.learn_vectors else rows.half().float())
    return estimator._make_model(tokenizer, vectors.vocabulary, network, labels)


def untrained_network(
    estimator: "TextClassifier", n_classes: int, n_words: int, vector_width: int, seed: int
) -> Network:
    """Make an untrained network, its word vectors still empty."""
    with torch.device("meta"):
        outline = estimator._make_network(n_classes, n_words, vector_width)
    check_memory(sum(tensor.numel() for tensor in (*outline.parameters(), *outline.buffers())))
    with Seeded(seed):
        return estimator._make_network(n_classes, n_words, vector_width)


def _word_vectors(
    estimator: "TextClassifier", texts: list[str], tokenizer: Tokenizer, vocabulary: Vocabulary, seed: int
) -> WordVectors:
    if estimator._transformer is not None:  # a node has features of its own
        return WordVectors(vocabulary, np.zeros((0, estimator._transformer.width), np.float32), covered=0)
    sources, width = estimator._vector_sources, estimator.vector_size
    if not sources:
        return random_vectors(vocabulary, width, seed)
    # These are the same for every seed, so that models can share them.
    return make_vectors(sources, texts, tokenizer, vocabulary, width, estimator.extra_words)


class Seeded(TorchFunctionMode):
    """While this lasts, this thread's random numbers come from a generator of their own, not from torch's global one.

    Threads that fit at the same time share the global one, and would take each other's numbers.
    """

    _DRAWS = frozenset(
        "uniform_ normal_ bernoulli_ random_ rand randn randint randperm trunc_normal_ orthogonal_ "
        "kaiming_uniform_ kaiming_normal_ xavier_uniform_ xavier_normal_".split()
    )

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._generator = torch.Generator().manual_seed(seed)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if getattr(func, "__name__", "") in self._DRAWS and kwargs.get("generator") is None:
            kwargs["generator"] = self._generator
        return func(*args, **kwargs)


def check_memory(numbers: int) -> None:
    """Refuse a network that cannot fit: weights, gradients and Adam's two moments, four bytes each."""
    needed = 16 * numbers
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else needed
    if needed > there:
        raise InputError(
            f"this network has {numbers:,} parameters, word vectors included, and takes {needed / 1e9:,.0f} GB to "
            f"train; this machine has {there / 1e9:,.0f} GB: make it narrower (hidden) or its vectors fewer (min_count)"
        )
