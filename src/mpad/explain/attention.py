"""Explanation by attention: where the network looked.

Faithful to the readout, not to the answer: the weights are exactly those with which word states enter the document
vector (averaged over the steps), but a state mixes its word with neighbours, the master node's way past attention is
not in them, and they do not know for which class they speak. One pass; use it for long documents or a first look.
"""

import numpy as np

from mpad.explain.document import TracedDocument
from mpad.explain.weights import PartWeights
from mpad.inference.answer import Answer


def attention_weights(document: TracedDocument, output: Answer) -> PartWeights:
    """Share of the attention of each part.

    word      its node's attention, split evenly over the node's occurrences
    edge u→v  what u's message is of v's inbox, times v's attention
    sentence  its attention in the hierarchical variants; else the sum over its words
    """
    assert output.word_attention is not None
    node = output.word_attention.astype(np.float64).mean(0)
    graphs = document.graphs
    sentence = None
    if output.sentence_attention is not None:
        sentence = output.sentence_attention.astype(np.float64).mean(0)
        node = node * np.repeat(sentence, np.diff(graphs.node_start))
    occurrences = np.bincount(document.node_of, minlength=len(node)).clip(min=1)
    words = (node / occurrences)[document.node_of]
    _, target = document.edge_nodes
    received = np.bincount(target, graphs.weight, minlength=len(node)) + document.model.network.config.master_node
    edges = node[target] * graphs.weight / received[target]
    if sentence is None or not document.n_sentences:
        sentence = np.bincount(document.sentence_of, words, minlength=document.n_sentences).astype(float)
    return PartWeights(words, edges, sentence)
