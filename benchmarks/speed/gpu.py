"""`python -m benchmarks.speed.gpu`: training on a GPU, in a few minutes; writes gpu.json and RESULTS.md.

Real corpora come from the folder MPAD_DATA, word vectors from the file MPAD_VECTORS; without them corpora are made up,
vectors are random, and accuracies mean nothing.
"""

import os
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.model_selection import StratifiedKFold, cross_val_score

from benchmarks import results
from benchmarks.corpus import Corpus, imdb, phrases, polarity
from benchmarks.results import Row
from benchmarks.speed import straightforward
from benchmarks.speed.floor import Machine, measure_machine, step_floor
from benchmarks.speed.measure import spread
from benchmarks.speed.padded import PaddedMPAD, train_epoch
from mpad import MPADClassifier, cross_validate
from mpad.config import PRESETS, MPADConfig, TrainingConfig
from mpad.graph import graphs_of_words
from mpad.graph.batch import CorpusTensors
from mpad.model import MPAD
from mpad.paper.baselines.tfidf_svm import tfidf_svm
from mpad.training.engine import find_engine
from mpad.training.loop import shuffled_batches
from mpad.training.progress import EpochReport
from mpad.training.task import Task, make_examples

_FOLDS, _EPOCHS, _BATCH = 10, 60, 128


def main() -> None:
    """Run everything."""
    results.check_clean()
    machine, short, presets = measure_machine(), polarity(10_662).text, ("paper", "authors")
    sections: dict[str, Callable[[], list[Row]]] = {
        "A cross-validation at once": lambda: results.on(short, [row for a in presets for row in _cross_validation(a)]),
        "A step of ten stacked folds against its floor": lambda: results.on(
            short, [_step(machine, a) for a in (False, True)]
        ),
        "One model": lambda: [
            *results.on(phrases(200_000).text, [_epochs(phrases(200_000), 64, "mpad", "SST-1's phrases: under 1 s")]),
            *results.on(imdb(25_000).text, [_epochs(imdb(25_000), 128, "mpad", "IMDB: under 1 s")]),
            *results.on(imdb(25_000).text, [_epochs(imdb(25_000), 128, "clique", "")]),
            *results.on(short, [_against_padding()]),
        ],
    }
    found = {}
    for title, section in sections.items():
        print(f"… {title}", file=sys.stderr, flush=True)
        found[title] = section()
    results.write(found, "gpu", Path(os.environ.get("OUT") or results.HERE))


def _classifier(**options: Any) -> MPADClassifier:
    vectors = os.environ.get("MPAD_VECTORS")
    given: dict[str, Any] = {"vectors": vectors, "extra_words": 0} if vectors else {"vectors": None, "vector_size": 300}
    return MPADClassifier(device="cuda", random_state=0, patience=None, **given, **options)


def _cross_validation(preset: str) -> list[Row]:
    corpus = polarity(10_662)
    times: list[float] = []

    def seen(report: EpochReport) -> None:
        if report.model == 0:
            times.append(time.perf_counter())

    begin = time.perf_counter()
    folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=0)
    classifier = _classifier(preset=preset, max_epochs=_EPOCHS)
    found = cross_validate(classifier, corpus.texts, corpus.labels, cv=folds, sink=seen)
    each = statistics.median(np.diff(times))
    accuracy = np.array([result.test_accuracy for result in found])
    error = accuracy.std(ddof=1) / _FOLDS**0.5
    baseline = cross_val_score(tfidf_svm(), corpus.texts, corpus.labels, cv=folds).mean()
    steps = -(-int(0.81 * len(corpus.texts)) // _BATCH)
    said = (
        f"Google News subset + estimates as vectors; best epoch by validation; TF-IDF + linear SVM {100 * baseline:.1f}"
    )
    return [
        Row(
            f"{corpus.name} ({preset}): {_FOLDS} folds, {_EPOCHS} epochs, validation and test accuracy each epoch",
            f"{_EPOCHS * each:.2f} s",
            target="under 5 s",
            note=f"{_EPOCHS} times the median epoch, {1000 * each:.1f} ms: {steps} steps and an evaluation",
            spread=f"{spread([1000 * one for one in np.diff(times)], '.1f')} ms an epoch",
        ),
        Row(
            f"the same with everything before it ({preset})",
            f"{times[-1] - begin:.2f} s",
            note=f"reading text and vectors, kernels, recording: {times[0] - each - begin:.2f} s; kernels are compiled "
            "when first used on a machine, then kept",
        ),
        Row(
            f"test accuracy ({preset})",
            f"{100 * accuracy.mean():.2f} ± {196 * error:.2f} %",
            note=said if os.environ.get("MPAD_VECTORS") else "random vectors",
        ),
    ]


def _tasks(corpus: Corpus, authors: bool, n_models: int) -> list[Task]:
    graphs, vocabulary = graphs_of_words(corpus.texts)
    on_gpu, targets = CorpusTensors(graphs, "cuda"), np.array(corpus.labels)
    vectors = torch.randn(vocabulary.n_rows, 300, device="cuda") * 0.1
    tasks = []
    for model in range(n_models):
        network = MPAD(
            MPADConfig(2, 300, vocabulary.n_rows, **PRESETS["authors" if authors else "paper"].network)
        ).cuda()
        network.vectors = vectors
        rows = np.flatnonzero((np.arange(len(graphs)) % n_models != model) | (n_models == 1))
        training, held = rows[: len(rows) * 9 // 10], rows[len(rows) * 9 // 10 :]
        parts = make_examples(on_gpu, training, targets), make_examples(on_gpu, held, targets)
        tasks.append(Task(network, *parts, TrainingConfig(seed=model)))
    return tasks


def _step(machine: Machine, authors: bool) -> Row:
    """A recorded step, replayed over and over."""
    tasks = _tasks(polarity(10_662), authors, _FOLDS)
    engine = find_engine(tasks)
    orders = [shuffled_batches(len(task.examples), _BATCH, np.random.default_rng(0)) for task in tasks]
    engine.prepare(orders)
    engine.pass_over()
    engine.evaluate()
    engine.finish()
    engine.prepare(orders)
    (prepared,) = engine.prepared
    size: Any = Counter(size for _, size in prepared).most_common(1)[0][0]
    steps = [step for step, other in prepared if other == size][:60]

    def several() -> None:
        for step in steps:
            engine.train_step(step, size)

    seconds = _time(several) / len(steps)
    fields = torch.stack(steps)[:, : _FOLDS * size.nodes]
    real = int((fields >= 0).sum()) / len(steps) + _FOLDS * size.documents
    launches = _launches(lambda: engine.train_step(steps[0], size))
    floor = step_floor(machine, authors, _FOLDS, _FOLDS * (size.nodes + size.graphs), launches)
    return Row(
        f"a step of {_FOLDS} stacked folds ({'authors' if authors else 'paper'}), {real:,.0f} rows and padding",
        f"{1e6 * seconds:.0f} µs",
        f"{1e6 * floor.total:.0f} µs",
        seconds / floor.total,
        "at most 3 (lower is better)",
        f"{floor}; over the thin products' floor: {seconds / (floor.thin_products + floor.launches):.2f}",
    )


def _time(work: Callable[[], object], rounds: int = 5) -> float:
    work()
    times = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def _launches(work: Callable[[], object]) -> int:
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        work()
        torch.cuda.synchronize()
    return int(sum(event.count for event in profiler.key_averages() if event.self_device_time_total > 0))


def _epochs(corpus: Corpus, hidden: int, variant: str, target: str) -> Row:
    times: list[float] = []
    classifier = _classifier(preset="paper", variant=variant, hidden=hidden, max_epochs=4)
    classifier.fit(corpus.texts, corpus.labels, sink=lambda report: times.append(time.perf_counter()))
    each = statistics.median(np.diff(times))
    return Row(
        f"an epoch, {variant}, d = {hidden}, {len(corpus.texts):,} documents of {corpus.name}, validation included",
        f"{each:.2f} s",
        target=target,
        note=f"{len(corpus.texts) / each:,.0f} documents a second",
    )


def _against_padding() -> Row:
    """One model's epoch over real and over padded batches, on the same GPU."""
    corpus = polarity(2_560)
    (task,) = _tasks(corpus, authors=False, n_models=1)[:1]
    full = make_examples(task.examples.corpus, np.arange(len(corpus.texts)), np.array(corpus.labels))
    engine, generator = find_engine([Task(task.network, full, full, task.config)]), np.random.default_rng(0)

    def ours() -> None:
        engine.prepare([shuffled_batches(len(full), _BATCH, generator)])
        engine.pass_over()
        engine.evaluate()
        engine.finish()

    batches, words = straightforward.prepare(corpus.texts, corpus.labels, hierarchical=False)
    moved = [straightforward.PaddedBatch(*[part.cuda() for part in vars(batch).values()]) for batch in batches]
    padded = PaddedMPAD(MPADConfig(2, 300, 9), torch.randn(len(words) + 1, 300) * 0.1).cuda()
    optimiser = torch.optim.Adam([parameter for parameter in padded.parameters() if parameter.requires_grad])
    mine, theirs = _time(ours), _time(lambda: train_epoch(padded, optimiser, moved))
    return Row(
        f"an epoch of one model, {len(corpus.texts):,} documents of {corpus.name}, against padded batches",
        f"{1000 * mine:.0f} ms",
        f"{1000 * theirs:.0f} ms",
        theirs / mine,
        note="ours evaluates every document too, theirs does not",
    )


if __name__ == "__main__":
    main()
