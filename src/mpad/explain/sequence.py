"""Where a network that reads words in order looked: its attention on words and sentences."""

from typing import Any

import numpy as np

from mpad.errors import InputError
from mpad.explain.explanation import Explanation, SentenceWeight, WordWeight
from mpad.text_model import TextModel


def explain_by_attention(model: TextModel, text: str, column: int | None) -> Explanation:
    """Weights of words, times those of their sentences where there are two levels; there are no edges.

    `column` is the class that is shown, by default the likeliest; attention is the same for all.
    """
    output = model.answer(model.pack([text]))
    if output.word_attention is None:
        raise InputError(f"a '{model.kind}' has no attention to show (hn-att and models over graphs have)")
    probabilities = model.labels.probabilities(output.logits)[0]
    tokens = model.tokenizer.trace(text)
    words = output.word_attention.astype(np.float64).mean(0)
    sentence_of = np.array(tokens.sentences, np.int64)
    n_sentences = int(sentence_of.max(initial=-1)) + 1
    shares = np.ones(n_sentences)
    if output.sentence_attention is not None:
        shares = output.sentence_attention.astype(np.float64).mean(0)[:n_sentences]
        words = words * shares[sentence_of]
    else:
        shares = np.bincount(sentence_of, words, minlength=n_sentences).astype(float)
    classes = model.labels.classes.tolist()
    sentences = []
    for number, weight in enumerate(shares.tolist()):
        members = np.flatnonzero(sentence_of == number)
        sentences.append(SentenceWeight(tokens.spans[members[0]][0], tokens.spans[members[-1]][1], weight))
    chosen: Any = classes[int(probabilities.argmax())]
    if model.labels.multilabel:
        chosen = tuple(name for name, p in zip(classes, probabilities, strict=True) if p > 0.5)
    return Explanation(
        text=text,
        label=classes[int(probabilities.argmax()) if column is None else column],
        predicted=chosen,
        probabilities={name: float(p) for name, p in zip(classes, probabilities, strict=True)},
        method="attention",
        words=tuple(
            WordWeight(word, *span, sentence, weight)
            for word, span, sentence, weight in zip(
                tokens.words, tokens.spans, tokens.sentences, words.tolist(), strict=True
            )
        ),
        edges=(),
        sentences=tuple(sentences),
    )
