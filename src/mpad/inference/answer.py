"""Predictions of some documents as NumPy arrays."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mpad.graph.packed import PackedGraphs
from mpad.linear.potentials import Potentials

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Answer:
    """Logits, document vectors and attention, in the order of the documents."""

    logits: Floats  # (n_documents, n_classes)
    vectors: Floats  # (n_documents, hidden), the document vectors that the last layer classifies
    word_attention: Floats | None  # (steps, n_nodes), sums to 1 over the words of a graph
    sentence_attention: Floats | None  # (steps or 1, n_graphs), sums to 1 over the sentences of a document
    member_logits: Floats | None = None  # (members, n_documents, n_classes), of an ensemble


def with_potentials(network: Answer, potentials: Potentials | None, graphs: PackedGraphs) -> Answer:
    """Add the linear part's logits to a network's predictions."""
    if potentials is None:
        return network
    linear = potentials.logits(graphs)
    members = network.member_logits
    return replace(
        network,
        logits=potentials.add_network(network.logits, linear),
        member_logits=None if members is None else potentials.add_network(members, linear),
    )


def join(answers: list[Answer]) -> Answer:
    """Concatenate predictions."""
    if len(answers) == 1:
        return answers[0]
    words = [answer.word_attention for answer in answers if answer.word_attention is not None]
    sentences = [answer.sentence_attention for answer in answers if answer.sentence_attention is not None]
    members = [answer.member_logits for answer in answers if answer.member_logits is not None]
    return Answer(
        np.concatenate([answer.logits for answer in answers]),
        np.concatenate([answer.vectors for answer in answers]),
        np.concatenate(words, axis=1) if words else None,
        np.concatenate(sentences, axis=1) if sentences else None,
        np.concatenate(members, axis=1) if members else None,
    )
