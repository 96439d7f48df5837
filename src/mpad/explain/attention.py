"""Explanation by attention weights.

They are exactly the weights with which word states enter the document vector, averaged over the steps. They describe
the readout, not the prediction: a state mixes its word with its neighbors, the master node bypasses the attention, and
the weights are the same for every class. One pass over the network; useful for long documents or a first look.
"""

from typing import Any

import numpy as np

from mpad.errors import InputError
from mpad.explain.document import PartWeights, TracedDocument
from mpad.inference.network import Answer
from mpad.inference.pipeline import Pipeline
from mpad.text.tokenizer import Tokens


def attention_weights(document: TracedDocument) -> PartWeights:
    """Return the share of the attention of each part.

    word      attention of its node, divided evenly among the node's occurrences
    edge u→v  share of u's message in the inbox of v, times the attention of v
    sentence  its attention in the hierarchical variants, otherwise the sum over its words
    """
    graphs = document.graphs
    output = document.model.answer(graphs)
    assert output.word_attention is not None
    node = output.word_attention.astype(np.float64).mean(0)
    sentences = None
    if output.sentence_attention is not None:
        sentences = output.sentence_attention.astype(np.float64).mean(0)
        node = node * np.repeat(sentences, np.diff(graphs.node_start))
    words = document.spread_nodes(node)
    _, target = document.edge_nodes
    received = np.bincount(target, graphs.weight, minlength=len(node)) + document.model.network.config.master_node
    edges = node[target] * graphs.weight / received[target]
    if sentences is None or not document.n_sentences:
        sentences = document.sum_sentences(words)
    return PartWeights(words, edges, sentences)


def sequence_attention(model: Pipeline, tokens: Tokens, packed: Any, output: Answer) -> PartWeights:
    """Return the attention on words and sentences of a network that reads words in order.

    The weight of a word is multiplied by that of its sentence if there are two levels of attention.
    """
    if output.word_attention is None:
        raise InputError(f"a '{model.kind}' has no attention to show (hn-att and models over graphs have)")
    words = output.word_attention.astype(np.float64).mean(0)
    sentence_of = np.array(tokens.sentences, np.int64)
    first, weights = np.arange(len(words)), words
    if output.sentence_attention is not None:
        runs = output.sentence_attention.astype(np.float64).mean(0)  # a long sentence is split into several
        run_of = np.repeat(np.arange(len(runs)), np.diff(packed.sentence_start))
        words = words * runs[run_of]
        first = packed.sentence_start[:-1][np.diff(packed.sentence_start) > 0]
        weights = runs[run_of[first]]
    n_sentences = int(sentence_of.max(initial=-1)) + 1
    sentences = np.bincount(sentence_of[first], weights, minlength=n_sentences).astype(float)
    return PartWeights(words, np.zeros(0), sentences)
