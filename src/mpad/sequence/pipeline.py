"""The pipeline of a baseline's network, which reads words in order, graphs of words, or parse trees."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from mpad.data.inputs import as_texts
from mpad.inference.network import Answer
from mpad.inference.pipeline import Pipeline
from mpad.sequence.batch import cut_sentences
from mpad.sequence.trees import pack_trees
from mpad.text.vocabulary import EncodedCorpus


@dataclass(frozen=True)
class SequencePipeline(Pipeline):
    """Pipeline of a network that is not MPAD."""

    def packed(self, corpus: EncodedCorpus, texts: Sequence[str]) -> Any:
        """Return bounded sentences of ids, graphs of words, or parse trees, whichever the network reads."""
        if self.network.reads_trees:
            return pack_trees(texts, corpus, len(self.labels))
        if self.network.graph is not None:
            return super().packed(corpus, texts)
        return cut_sentences(corpus) if self.network.by_sentence else corpus

    def answers(self, texts: Iterable[str]) -> Iterator[tuple[Any, Answer]]:
        """Yield packed texts and their predictions, part by part."""
        checked = as_texts(texts)
        if checked:
            yield from super().answers(checked)
            return
        packed = self.pack([""])  # these networks need a document
        answer = self.answer(packed)
        yield packed, Answer(answer.logits[:0], answer.vectors[:0], None, None)
