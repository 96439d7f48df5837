"""Explanation by attention weights.

They are exactly the weights with which word states enter the document vector, averaged over the steps. They describe
the readout, not the prediction: a state mixes its word with its neighbors, the master node bypasses the attention, and
the weights are the same for every class. One pass over the network; useful for long documents or a first look.
"""

import numpy as np

from mpad.errors import InputError
from mpad.explain.assemble import assemble
from mpad.explain.document import PartWeights, TracedDocument
from mpad.explain.explanation import Explanation
from mpad.inference.network import Answer
from mpad.inference.pipeline import Pipeline


def attention_weights(document: TracedDocument, output: Answer) -> PartWeights:
    """Return the share of the attention of each part.

    word      attention of its node, divided evenly among the node's occurrences
    edge u→v  share of u's message in the inbox of v, times the attention of v
    sentence  its attention in the hierarchical variants, otherwise the sum over its words
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


def explain_by_attention(model: Pipeline, text: str, column: int | None) -> Explanation:
    """Explain a network that reads words in order by its attention on words and sentences.

    The weight of a word is multiplied by that of its sentence if there are two levels of attention. `column` is the
    class to name, by default the most probable; the weights are the same for all.
    """
    packed = model.pack([text])
    output = model.answer(packed)
    if output.word_attention is None:
        raise InputError(f"a '{model.kind}' has no attention to show (hn-att and models over graphs have)")
    probabilities = model.labels.probabilities(output.logits)[0]
    tokens = model.tokenizer.trace(text)
    words = output.word_attention.astype(np.float64).mean(0)
    sentence_of = np.array(tokens.sentences, np.int64)
    n_sentences = int(sentence_of.max(initial=-1)) + 1
    if output.sentence_attention is not None:
        runs = output.sentence_attention.astype(np.float64).mean(0)  # a long sentence is split into several
        run_of = np.repeat(np.arange(len(runs)), np.diff(packed.sentence_start))
        words = words * runs[run_of]
        first = packed.sentence_start[:-1][np.diff(packed.sentence_start) > 0]
        shares = np.bincount(sentence_of[first], runs[run_of[first]], minlength=n_sentences).astype(float)
    else:
        shares = np.bincount(sentence_of, words, minlength=n_sentences).astype(float)
    named = int(probabilities.argmax()) if column is None else column
    parts = PartWeights(words, np.zeros(0), shares)
    return assemble(text, tokens, model.labels, probabilities, named, "attention", parts)
