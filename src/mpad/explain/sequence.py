"""Where a network that reads words in order looked: its attention on words and sentences."""

import numpy as np

from mpad.errors import InputError
from mpad.explain.assemble import assemble
from mpad.explain.explanation import Explanation
from mpad.explain.weights import PartWeights
from mpad.pipeline.text_model import TextModel


def explain_by_attention(model: TextModel, text: str, column: int | None) -> Explanation:
    """Weights of words, times those of their sentences where there are two levels; there are no edges.

    `column` is the class that is shown, by default the likeliest; attention is the same for all.
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
        runs = output.sentence_attention.astype(np.float64).mean(0)  # of which a long sentence has several
        run_of = np.repeat(np.arange(len(runs)), np.diff(packed.sentence_start))
        words = words * runs[run_of]
        first = packed.sentence_start[:-1][np.diff(packed.sentence_start) > 0]
        shares = np.bincount(sentence_of[first], runs[run_of[first]], minlength=n_sentences).astype(float)
    else:
        shares = np.bincount(sentence_of, words, minlength=n_sentences).astype(float)
    shown = int(probabilities.argmax()) if column is None else column
    parts = PartWeights(words, np.zeros(0), shares)
    return assemble(text, tokens, model.labels, probabilities, shown, "attention", parts)
