"""A teacher that needs no model, and an encoder that imitates it."""

import hashlib

import numpy as np
import pytest

from mpad.encoder import pretraining
from mpad.encoder.pretraining import PretrainConfig, pretrain

WORDS = "the cat dog sat on mat good bad film was not very it is house tree river blue red runs".split()
SMALL = PretrainConfig(
    hidden=16, vector_width=16, read_width=16, words=30, pieces=60, passages=6_000, rounds=3, batch_size=64
)


class WordTeacher:
    """Stands in for a sentence transformer: the sum of a fixed random vector per word."""

    width = 12

    def __init__(self, name="words", device="cpu", cache=None):
        self.name = self.label = str(name)
        self.digest = hashlib.blake2b(str(name).encode(), digest_size=16).hexdigest()

    def vectors(self, texts):
        rows = [sum((self._row(word) for word in text.lower().split()), np.zeros(self.width)) for text in texts]
        return np.array(rows).astype(np.float16)

    def _row(self, word):
        seed = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=4).digest(), "little")
        return np.random.default_rng(seed).standard_normal(self.width)


@pytest.fixture(scope="session")
def raw_texts():
    generator = np.random.default_rng(0)
    return [" ".join(generator.choice(WORDS, generator.integers(3, 15))) + "." for _ in range(400)]


@pytest.fixture
def word_teacher(monkeypatch):
    monkeypatch.setattr(pretraining, "Teacher", WordTeacher)


@pytest.fixture(scope="session")
def small_encoder(tmp_path_factory, raw_texts):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pretraining, "Teacher", WordTeacher)
        cache = tmp_path_factory.mktemp("pretraining")
        return pretrain(raw_texts, ["words"], SMALL, device="cpu", cache=cache, name="small")


@pytest.fixture(scope="session")
def small_folder(tmp_path_factory, small_encoder):
    folder = tmp_path_factory.mktemp("encoder") / "small"
    small_encoder.save(folder)
    return folder
