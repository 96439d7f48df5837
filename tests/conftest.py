"""Small corpora that every test can use."""

import os
import random

import numpy as np
import pytest
import torch

from mpad import MPADClassifier
from mpad.data.readers import Documents
from mpad.paper.datasets.files import write_dataset

_BESIDE_OTHERS = "PYTEST_XDIST_WORKER" in os.environ  # a process on each core; threads of several crawl
torch.set_num_threads(1 if _BESIDE_OTHERS else 2)
if _BESIDE_OTHERS:
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # of commands that tests run
os.environ.setdefault("MPAD_AUTO_VECTORS", "none")  # what is distilled has tests of its own; others need not wait
if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")  # runs the GPU's kernels here; read when Triton is first imported


@pytest.fixture(scope="session")
def reseal():
    """Make a model folder's checksums true again, as whoever changes its files on purpose would."""

    from security.folders import seal

    return seal


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


@pytest.fixture(scope="session")
def static_vectors(tmp_path_factory) -> str:
    """The folder of a Model2Vec model with a few pieces of words."""
    model2vec, tokenizers = pytest.importorskip("model2vec"), pytest.importorskip("tokenizers")
    pieces = "[PAD] [UNK] the a apple pear plum saw drill hammer un ##s ##less ##e".split()
    model = tokenizers.models.WordPiece({piece: k for k, piece in enumerate(pieces)}, unk_token="[UNK]")
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    vectors = np.random.default_rng(0).standard_normal((len(pieces), 16)).astype(np.float32)
    folder = tmp_path_factory.mktemp("static") / "model"
    model2vec.StaticModel(vectors, tokenizer).save_pretrained(str(folder))
    return str(folder)


@pytest.fixture(scope="session")
def tiny_transformer(tmp_path_factory) -> str:
    """The folder of a BERT of two layers, random weights and a window of 20 pieces; most words are cut into letters."""
    pytest.importorskip("transformers", reason="the extra 'vectors'")
    import string

    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertModel

    letters = string.ascii_lowercase + string.digits + string.punctuation
    whole = "[PAD] [UNK] [CLS] [SEP] the apple pear plum hammer saw drill".split()
    pieces = [*whole, *letters, *[f"##{c}" for c in letters]]
    tokenizer = Tokenizer(models.WordPiece({piece: k for k, piece in enumerate(pieces)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.enable_truncation(8)  # as folders of sentence transformers have it: neither should matter
    tokenizer.enable_padding(length=8)
    config = BertConfig(
        vocab_size=len(pieces),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=32,
        initializer_range=0.2,
    )
    folder = tmp_path_factory.mktemp("transformer") / "model"
    with torch.random.fork_rng():
        torch.manual_seed(0)
        BertModel(config).save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 20}')
    return str(folder)


@pytest.fixture
def small_data(tmp_path, monkeypatch, fruit_corpus):
    """MPAD_DATA with an mpqa for folds and a trec with a fixed split; MPAD_VECTORS for both."""
    monkeypatch.setenv("MPAD_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    texts, labels = fruit_corpus
    write_dataset("mpqa", {"all": Documents(texts, labels)})
    write_dataset("trec", {"train": Documents(texts[:90], labels[:90]), "test": Documents(texts[90:], labels[90:])})
    write_dataset(
        "sst2",
        {"train": Documents(texts[:80], labels[:80]), "dev": Documents(texts[80:100], labels[80:100])}
        | {"test": Documents(texts[100:], labels[100:])},
    )
    words = sorted({word.strip(".!;") for text in texts for word in text.split()})
    rows = np.random.default_rng(0).standard_normal((len(words), 8)).astype(np.float32)
    vectors = tmp_path / "vectors.npz"
    np.savez(vectors, words=np.array(words), vectors=rows, genuine=np.arange(len(words)) < 5)
    monkeypatch.setenv("MPAD_VECTORS", str(vectors))
    return vectors


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
