"""Small corpora that every test can use."""

import os
import random

import pytest
import torch

from mpad import MPADClassifier

torch.set_num_threads(2)
if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")  # runs the GPU's kernels here; read when Triton is first imported


@pytest.fixture(scope="session")
def fruit_corpus() -> tuple[list[str], list[str]]:
    """Documents whose label hangs on one word, with noise around it."""
    generator = random.Random(0)
    noise = "the a of and to in it was that on with he as is you for at by this had not are but from".split()
    telling = {"fruit": ["apple", "pear", "plum"], "tool": ["hammer", "saw", "drill"]}
    texts, labels = [], []
    for number in range(120):
        label = ("fruit", "tool")[number % 2]
        words = [generator.choice(noise) for _ in range(generator.randint(4, 12))]
        words.insert(generator.randrange(len(words)), generator.choice(telling[label]))
        words.insert(generator.randrange(len(words)), generator.choice(["stop.", "so!", "well;", "x"]))
        texts.append(" ".join(words))
        labels.append(label)
    return texts, labels


@pytest.fixture(scope="session", params=["mpad", "sentence-att", "clique", "path"])
def fitted(request: pytest.FixtureRequest, fruit_corpus: tuple[list[str], list[str]]) -> MPADClassifier:
    """A small trained model of each variant."""
    return _quick(request.param).fit(*fruit_corpus)


@pytest.fixture(scope="session")
def fitted_flat(fruit_corpus: tuple[list[str], list[str]]) -> MPADClassifier:
    """A small trained model of the flat variant."""
    return _quick("mpad").fit(*fruit_corpus)


def _quick(variant: str) -> MPADClassifier:
    return MPADClassifier(
        variant,
        hidden=16,
        vector_size=16,
        max_epochs=25,
        patience=None,
        learning_rate=0.01,
        batch_size=32,
        random_state=0,
        device="cpu",  # where a seed repeats to the last bit
    )
