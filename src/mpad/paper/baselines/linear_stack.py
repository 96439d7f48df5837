"""The strongest model without a network: SVM scores and the mean word vector, into a logistic regression."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpad.errors import InputError
from mpad.files.safe_json import as_settings
from mpad.files.tensors import Arrays
from mpad.graph.build import build_graphs
from mpad.linear.fit import fit_stack
from mpad.linear.potentials import INTEGERS, Potentials, PotentialShape
from mpad.paper.baselines.base import ProbableClassifier
from mpad.storage.model_folder import VECTORS, VOCABULARY, ModelFiles, write_json
from mpad.text.distilled import AUTO, vector_sources
from mpad.text.vectors import make_vectors
from mpad.text.vocabulary import SPARE_ROWS, Vocabulary, learn_vocabulary


@dataclass(eq=False, repr=False)
class LinearStack(ProbableClassifier):
    """TF-IDF of words and pairs of words into a linear SVM; its scores of documents that it has not seen, and the mean
    of the documents' word vectors weighed alike, into a logistic regression. Seconds of CPU, and no graph is walked.

    vectors: "auto", or a Model2Vec or sentence-transformers model by name or folder, as of MPADClassifier.
    """  # noqa: D205

    kind = "linear-stack"
    many_labels = True

    vectors: str | Sequence[str] = AUTO

    def _learn(self, texts: list[str], targets: NDArray[Any], n_classes: int) -> None:
        vocabulary, corpus = learn_vocabulary(texts, self.tokenizer_)
        sources = vector_sources(self.vectors)
        rows = np.zeros((vocabulary.n_rows, 0), np.float32)
        if sources:
            rows = make_vectors(sources, texts, self.tokenizer_, vocabulary, width=100, extra=0).rows
        graphs, self.vocabulary_ = build_graphs(corpus), vocabulary
        self.potentials_ = fit_stack(graphs, targets, n_classes, len(vocabulary), rows.astype(np.float16))

    def _scores(self, texts: list[str]) -> NDArray[Any]:
        graphs = build_graphs(self.vocabulary_.encode(texts, self.tokenizer_))
        return self.potentials_.logits(graphs)

    def _state(self, folder: Path) -> tuple[Arrays, dict[str, Any]]:
        write_json(folder / VOCABULARY, list(self.vocabulary_.words))
        shape = self.potentials_.shape
        return {**self.potentials_.tensors(), VECTORS: self.potentials_.vectors}, {
            "pairs": shape.pairs,
            "width": shape.width,
        }

    def _restore(self, files: ModelFiles, facts: dict[str, Any]) -> None:
        words = files.words()
        shape = as_settings(PotentialShape, {"words": len(words), **facts}, InputError)
        expected = shape.tensor_shapes(len(self.labels_), self.labels_.n_scores)
        tensors = files.tensors({**expected, VECTORS: (len(words) + SPARE_ROWS, shape.width)}, integers=INTEGERS)
        potentials = Potentials.from_tensors(tensors, tensors[VECTORS])
        assert potentials is not None
        self.vocabulary_, self.potentials_ = Vocabulary(words, seen=len(words)), potentials
