"""`python -m benchmarks.accuracy.encoders [--potion FOLDER]`: frozen vectors of texts into a logistic regression.

MPADEncoder, all-MiniLM-L6-v2, USE and, with its folder, potion-base-8M (Model2Vec). Of each dataset's training part 8,
32 and 128 documents per class are drawn three times; 1,500 others of the same part are the test. No test part is
read. Speed is that of one thread on Polarity's 20-word documents. Writes encoders.json; datasets come from the folder
MPAD_DATA.
"""

import argparse
import json
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from benchmarks import results
from mpad import MPADEncoder, load_dataset
from mpad.encoder.encoder import normalize
from mpad.encoder.teachers import MINILM, USE, Teacher
from mpad.paper.experiments.provenance import versions
from mpad.paper.experiments.splits import split

_DATASETS = "trec", "polarity", "subjectivity", "snippets", "reuters"
_SIZES, _DRAWS, _TESTED, _MOST = (8, 32, 128), 3, 1_500, 6_000
_TIMED = {"MPADEncoder": 4_000, "all-MiniLM-L6-v2": 200, "USE multilingual v3": 1_000, "potion-base-8M": 4_000}
Encode = Callable[[Sequence[str]], NDArray[np.floating]]


def main() -> None:
    """Measure all encoders that are there."""
    parser = argparse.ArgumentParser(description="frozen vectors into a logistic regression")
    parser.add_argument("--potion", help="folder of potion-base-8M")
    results.check_clean()
    rows: list[dict[str, Any]] = []
    for name, encode in _encoders(parser.parse_args().potion).items():
        accuracies: dict[int, list[float]] = {size: [] for size in _SIZES}
        for dataset in _DATASETS:
            for size, accuracy in _probe(encode, *training_part(dataset)):
                accuracies[size].append(accuracy)
        row = {
            "encoder": name,
            "commit": results.measured_commit(),
            "documents_per_second": round(_speed(name, encode)),
        }
        rows.append(row | {str(size): round(float(np.mean(each)), 2) for size, each in accuracies.items()})
        print(rows[-1], flush=True)
        record = {"versions": versions(), "datasets": _DATASETS, "draws": _DRAWS, "rows": rows}
        (results.HERE / "encoders.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def _encoders(potion: str | None) -> dict[str, Encode]:
    ours, minilm, use = MPADEncoder(), Teacher(MINILM), Teacher(USE)
    found: dict[str, Encode] = {
        "MPADEncoder": lambda texts: ours.encode(list(texts)),
    }
    if potion is not None:
        from model2vec import StaticModel

        model = StaticModel.from_pretrained(potion)
        found["potion-base-8M"] = lambda texts: normalize(model.encode(list(texts)))
    return found | {"USE multilingual v3": use.encode, "all-MiniLM-L6-v2": minilm.encode}


def training_part(name: str) -> tuple[list[str], NDArray[Any]]:
    """Texts and labels of a dataset's training part, or of its first fold's, at most 6,000 in random order."""
    corpus = split(load_dataset(name))
    rows = np.concatenate([part for part in corpus.splits[0].rows[:-1]])
    rows = np.random.default_rng(0).permutation(rows)[:_MOST]
    return [corpus.texts[k] for k in rows], np.array(corpus.labels)[rows]


def _probe(encode: Encode, texts: list[str], labels: NDArray[Any]) -> list[tuple[int, float]]:
    """Return size and accuracy in percent of each draw."""
    tested, pool = np.arange(len(texts))[:_TESTED], np.arange(len(texts))[_TESTED:]
    drawn = {
        (size, draw): np.concatenate([order[labels[order] == label][:size] for label in np.unique(labels)])
        for size in _SIZES
        for draw in range(_DRAWS)
        for order in [np.random.default_rng(draw).permutation(pool)]
    }
    needed = np.unique(np.concatenate([tested, *drawn.values()]))
    encoded = np.concatenate([encode([texts[k] for k in needed[s : s + 2_000]]) for s in range(0, len(needed), 2_000)])
    vectors = np.zeros((len(texts), encoded.shape[1]), np.float32)
    vectors[needed] = encoded
    found = []
    for (size, _), rows in drawn.items():
        model = LogisticRegression(C=10, max_iter=300).fit(vectors[rows], labels[rows])
        found.append((size, 100 * float(model.score(vectors[tested], labels[tested]))))
    return found


def _speed(name: str, encode: Encode) -> float:
    """Return documents of about 20 words per CPU second."""
    texts = load_dataset("polarity").train.texts[: _TIMED[name]]
    encode(texts[:100])
    start = time.process_time()
    encode(texts)
    return len(texts) / (time.process_time() - start)


if __name__ == "__main__":
    main()
