"""Vectors of pieces of words, from a Model2Vec model made here."""

import numpy as np
import pytest

from mpad import MPADClassifier
from mpad import inference as runtime
from mpad.errors import VectorFileError
from mpad.text import distilled
from mpad.text.distilled import auto_source, piece_vectors
from mpad.text.tokenizer import KimTokenizer
from mpad.text.vectors import compose_vectors, make_vectors
from mpad.text.vocabulary import SPARE_ROWS, Vocabulary, learn_vocabulary

model2vec = pytest.importorskip("model2vec")


@pytest.fixture
def folder(static_vectors, tmp_path, monkeypatch):
    """A Model2Vec model; nothing is cached outside."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    piece_vectors.cache_clear()
    yield static_vectors
    piece_vectors.cache_clear()


def test_a_word_is_the_mean_of_its_pieces(folder):
    pieces = piece_vectors(folder)
    rows = pieces.rows(["apple", "apples", "Apple", ""])
    table, place = pieces.table, pieces.tokenizer.get_vocab()
    assert np.allclose(rows[0], table[place["apple"]])
    assert np.allclose(rows[1], (table[place["apple"]] + table[place["##s"]]) / 2, atol=1e-6)
    assert np.allclose(rows[2], rows[0]) and not rows[3].any()


def test_new_words_are_put_together(folder):
    pieces = piece_vectors(folder)
    vocabulary, _ = learn_vocabulary(["a saw", "the pears"], KimTokenizer())
    vectors = compose_vectors(pieces, vocabulary, extra=100)
    full = vectors.vocabulary
    assert vectors.rows.shape == (len(full) + SPARE_ROWS, 16) and "##less" in full
    corpus = full.encode(["the plumless saw", "zzz plumless unapples"], KimTokenizer())
    named = [[full.words[k] for k in new] for new in corpus.new_words]
    assert named == [["plum", "##less"], [], []]  # "un" goes on with "##apple", which is no piece
    assert corpus.ids.tolist()[1] == corpus.ids.tolist()[4] == len(full)


def test_more_new_words_than_spare_rows(folder):
    pieces = piece_vectors(folder)
    vocabulary, _ = learn_vocabulary(["a saw"], KimTokenizer())
    full = compose_vectors(pieces, vocabulary, extra=100).vocabulary
    texts = [f"the saw{'s' * k}" for k in range(2, 2 * SPARE_ROWS)]
    parts = list(full.encode_parts(texts, KimTokenizer()))
    assert [text for part, _ in parts for text in part] == texts and len(parts) > 1
    for part, corpus in parts:
        alone = full.encode(part, KimTokenizer())
        assert len(corpus.new_words) <= SPARE_ROWS and corpus.new_words == alone.new_words
        for name in ("ids", "sentence_start", "document_start"):
            assert getattr(corpus, name).tolist() == getattr(alone, name).tolist()
    long = " ".join(f"saw{'s' * k}" for k in range(2, 2 * SPARE_ROWS))
    assert len(full.encode([long], KimTokenizer()).new_words) == SPARE_ROWS


def test_several_sources_stand_side_by_side(folder, tmp_path):
    np.savez(tmp_path / "v.npz", words=np.array(["saw", "apple"]), vectors=np.ones((2, 3), np.float32))
    vocabulary, _ = learn_vocabulary(["a saw", "the pears"], KimTokenizer())
    both = make_vectors([folder, tmp_path / "v.npz"], [], KimTokenizer(), vocabulary, 8, 100)
    other = make_vectors([tmp_path / "v.npz", folder], [], KimTokenizer(), vocabulary, 8, 100)
    assert both.width == other.width == 19
    row = both.vocabulary.id("saw")
    assert np.allclose(both.rows[row, 16:], 1) and np.allclose(both.rows[row, :16], piece_vectors(folder).rows(["saw"]))
    assert np.allclose(other.rows[other.vocabulary.id("apple"), :3], 1)


def test_fit_save_and_answer_with_new_words(folder, fruit_corpus, tmp_path, monkeypatch):
    monkeypatch.setenv("MPAD_AUTO_VECTORS", folder)
    texts, labels = fruit_corpus
    model = MPADClassifier(hidden=16, random_state=0, device="cpu", max_epochs=4).fit(texts, labels)
    assert not model.model_.network.config.learn_vectors
    asked = ["the apples were plumless", "unsaw drills", "hammers", "qqqq"]
    whole = model.predict_proba(asked)
    alone = np.concatenate([model.predict_proba([text]) for text in asked])
    assert np.allclose(whole, alone, atol=1e-6)
    packed = model.model_.pack(asked)
    assert packed.new_words
    network = model.model_.network
    assert np.allclose(network.answer_by_torch(packed).logits, network.answer(packed).logits, atol=1e-5)
    model.save(tmp_path / "m")
    for loaded in (runtime.load(tmp_path / "m"), MPADClassifier.load(tmp_path / "m", device="cpu")):
        assert np.array_equal(loaded.predict_proba(asked), whole)
    explanation = model.explain("the apples were plumless", method="gradients")
    assert explanation.words[-1].word == "plumless" and np.isfinite(explanation.words[-1].weight)


def test_what_auto_stands_for(monkeypatch):
    monkeypatch.setenv("MPAD_AUTO_VECTORS", "none")
    assert auto_source() is None
    monkeypatch.setenv("MPAD_AUTO_VECTORS", "/some/model")
    assert auto_source() == "/some/model"
    monkeypatch.delenv("MPAD_AUTO_VECTORS")
    monkeypatch.setattr(distilled, "installed_transformer", lambda: None)
    assert auto_source() is None and "pip install" in distilled.missing_hint()
    monkeypatch.setenv("MPAD_AUTO_VECTORS", "none")
    assert distilled.missing_hint() is None


def test_a_source_that_is_nothing_says_so(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "config.json").write_text("{}")
    with pytest.raises(VectorFileError, match="neither a file of word vectors nor a Model2Vec"):
        piece_vectors(str(tmp_path / "folder"))


def test_a_transformer_is_distilled_once(folder, tmp_path, monkeypatch):
    made = []
    static = model2vec.StaticModel.from_pretrained(folder)
    monkeypatch.setattr(distilled, "_read_static", lambda kind, source: None)
    monkeypatch.setattr(distilled, "_distill", lambda source: made.append(source) or static)
    for _ in range(2):
        assert piece_vectors("some/transformer").width == 16
        piece_vectors.cache_clear()
    assert made == ["some/transformer"]


def test_a_vocabulary_without_pieces_is_as_before():
    vocabulary = Vocabulary(["a", "b"], seen=2)
    assert not vocabulary.has_pieces and vocabulary.encode(["a x"], KimTokenizer()).new_words == ()
    assert [part for part, _ in vocabulary.encode_parts(["a", "x"], KimTokenizer())] == [["a", "x"]]


def test_words_of_validation_documents_have_rows_and_potentials(folder, fruit_corpus):
    texts, labels = fruit_corpus
    held = [text + " plumless unhammer" for text in texts[:20]], labels[:20]
    options = {"hidden": 8, "random_state": 0, "device": "cpu", "max_epochs": 2, "vectors": [folder, folder]}
    model = MPADClassifier(**options).fit(texts, labels, validation=held).model_
    seen = learn_vocabulary(texts, KimTokenizer())[0]
    assert model.vocabulary.seen == len(seen) and model.vocabulary.words[: len(seen)] == seen.words
    assert "plumless" in model.vocabulary and model.potentials.shape.words == len(model.vocabulary)
    assert model.network.config.vector_width == 32
