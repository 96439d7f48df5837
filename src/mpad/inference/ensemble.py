"""Ensembles at prediction: `mpad.ensemble` in NumPy."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mpad.config import MPADConfig
from mpad.graph.packed import PackedGraphs
from mpad.inference.answer import Answer
from mpad.inference.fold import Weights
from mpad.inference.network import Network


class Ensemble:
    """The mean of several networks; `weights` and `vectors` have the names and shapes of a model folder."""

    def __init__(self, config: MPADConfig, weights: Weights, vectors: NDArray[np.floating]) -> None:
        self.config, self.weights, self.vectors = config, weights, vectors
        self.by_sentence = config.hierarchical
        one, width = replace(config, members=1), config.vector_width
        self._members = []
        for k in range(config.members):
            at = f"members.{k}."
            own = {name.removeprefix(at): value for name, value in weights.items() if name.startswith(at)}
            table = np.ascontiguousarray(vectors[:, k * width : (k + 1) * width]) if config.learn_vectors else vectors
            self._members.append(Network(one, own, table))

    def answer(self, graphs: PackedGraphs) -> Answer:
        """Predict every document."""
        answers = [member.answer(graphs) for member in self._members]
        each = np.stack([answer.logits for answer in answers])
        words = [answer.word_attention for answer in answers if answer.word_attention is not None]
        sentences = [answer.sentence_attention for answer in answers if answer.sentence_attention is not None]
        return Answer(
            each.mean(0),
            np.concatenate([answer.vectors for answer in answers], axis=1),
            np.stack(words).mean(0),
            np.stack(sentences).mean(0) if sentences else None,
            member_logits=each,
        )


def make_network(config: MPADConfig, weights: Weights, vectors: NDArray[np.floating]) -> Network | Ensemble:
    """Build a trained network or ensemble from its weights."""
    return (Network if config.members == 1 else Ensemble)(config, weights, vectors)
