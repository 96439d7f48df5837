"""doc2vec: document vectors learnt without labels, and logistic regression (Le & Mikolov, ICML 2014)."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from mpad.extras import require
from mpad.files.tensors import Arrays
from mpad.paper.baselines.base import ProbableClassifier, fit_linear, linear_scores, linear_shapes
from mpad.storage.model_folder import VOCABULARY, ModelFiles, write_json

_KINDS = {"dbow": 0, "dm": 1}  # gensim's `dm`


@dataclass(eq=False, repr=False)
class Doc2Vec(ProbableClassifier):
    """PV-DBOW and PV-DM side by side, both learnt from the training texts; documents' vectors are inferred.

    Word vectors are learnt beside PV-DBOW's. Vectors are inferred for training documents too, so that the regression
    sees what it will see of new ones, and standardised, since those of a few words are hardly longer than noise. All
    random draws are seeded, the inference of a document by its words alone: an answer does not hang on the batch.
    """

    kind = "doc2vec"
    needs = ("gensim.models.doc2vec",)
    many_labels = True

    width: int = 100
    epochs: int = 20
    min_count: int = 2
    C: float = 1.0
    seed: int = 0

    def _learn(self, texts: list[str], targets: NDArray[Any], n_classes: int) -> None:
        gensim = require("gensim.models.doc2vec", extra="baselines")
        words = [self.tokenizer_.words(text) for text in texts]
        # Shuffled: where all documents of a class come first, words learn to be of the class that came last.
        order = np.random.default_rng(self.seed).permutation(len(words)).tolist()
        tagged = [gensim.TaggedDocument(words[number], [number]) for number in order]
        self.models_ = {name: self._model(dm, documents=tagged) for name, dm in _KINDS.items()}
        inferred = self._infer(words)
        mean, spread = inferred.mean(0), inferred.std(0).clip(min=1e-12)
        regression = LogisticRegression(C=self.C, max_iter=2000)
        weight, bias = fit_linear(regression, (inferred - mean) / spread, targets)
        self.weight_ = weight / spread
        self.bias_ = bias - self.weight_ @ mean

    def _model(self, dm: int, **source: Any) -> Any:
        gensim = require("gensim.models.doc2vec", extra="baselines")
        options = {"vector_size": self.width, "epochs": self.epochs, "min_count": self.min_count}
        options["dbow_words"] = 1 - dm
        return gensim.Doc2Vec(dm=dm, window=5, negative=5, seed=self.seed, workers=1, **options, **source)

    def _infer(self, documents: Sequence[Sequence[str]]) -> NDArray[Any]:
        rows = []
        for words in documents:
            parts = []
            for model in self.models_.values():
                model.random.seed(self.seed)
                parts.append(model.infer_vector(list(words)))
            rows.append(np.concatenate(parts))
        return np.array(rows, np.float64)

    def _scores(self, texts: list[str]) -> NDArray[Any]:
        return linear_scores(self._infer([self.tokenizer_.words(text) for text in texts]), self.weight_, self.bias_)

    def _state(self, folder: Path) -> tuple[Arrays, dict[str, Any]]:
        one = self.models_["dm"].wv
        counts = {word: int(one.get_vecattr(word, "count")) for word in one.index_to_key}
        write_json(folder / VOCABULARY, counts)
        arrays: Arrays = {"weight": self.weight_, "bias": self.bias_}
        for name, model in self.models_.items():
            arrays |= {f"{name}.words": model.wv.vectors, f"{name}.outputs": model.syn1neg}
        return arrays, {"documents": int(self.models_["dm"].corpus_count)}

    def _restore(self, files: ModelFiles, facts: dict[str, Any]) -> None:
        counts = files.read_json(VOCABULARY)
        if not isinstance(counts, dict) or not all(type(n) is int and 0 < n < 1 << 40 for n in counts.values()):
            raise files.damaged(VOCABULARY, "expected how often each word occurs")
        for name, most in (("width", 10_000), ("epochs", 10_000), ("seed", 2**32 - 1)):
            if type(getattr(self, name)) is not int or not 0 <= getattr(self, name) <= most:
                raise TypeError(f"{name} is a whole number, at most {most:,}")
        shapes: dict[str, tuple[int, ...]] = dict(linear_shapes(len(_KINDS) * self.width, self.labels_))
        for name in _KINDS:
            shapes |= {f"{name}.{part}": (len(counts), self.width) for part in ("words", "outputs")}
        arrays = files.tensors(shapes)
        self.weight_, self.bias_ = arrays["weight"], arrays["bias"]
        self.models_ = {}
        for name, dm in _KINDS.items():
            model = self._model(dm)
            model.min_count = 1
            model.build_vocab_from_freq(counts, corpus_count=int(facts["documents"]))
            _put_in_order(model, list(counts))
            model.wv.vectors[:], model.syn1neg[:] = arrays[f"{name}.words"], arrays[f"{name}.outputs"]
            self.models_[name] = model


def _put_in_order(model: Any, words: list[str]) -> None:
    """Number words as they were: gensim orders equally frequent ones again, and draws noise words by their number."""
    keyed = model.wv
    before = np.array([keyed.key_to_index[word] for word in words])
    keyed.index_to_key, keyed.key_to_index = words, {word: place for place, word in enumerate(words)}
    for name, values in keyed.expandos.items():
        keyed.expandos[name] = values[before]
    model.make_cum_table()
