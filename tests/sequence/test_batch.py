import torch

from mpad.sequence.batch import WordTensors, cut_sentences, pad
from mpad.text.tokenizer import as_tokenizer
from mpad.text.vocabulary import learn_vocabulary


def test_words_of_chosen_documents_in_order():
    texts = ["a b. c!", "", "b b"]
    vocabulary, corpus = learn_vocabulary(texts, as_tokenizer("kim"), sentences=True)
    tensors = WordTensors(corpus)
    batch = tensors.take(torch.tensor([2, 0, 1]))
    words = [vocabulary.words[number] for number in batch.words.tolist()]
    assert words == ["b", "b", "a", "b", "c", "!"] and batch.length.tolist() == [2, 4, 0]
    assert batch.sentence_length.tolist() == [2, 2, 2, 0] and batch.sentence_count.tolist() == [1, 2, 1]
    assert batch.owner.tolist() == [0, 0, 1, 1, 1, 1] and len(tensors) == 3
    assert tensors.document_sizes(torch.tensor([0, 1, 2])).tolist() == [4, 0, 2]


def test_padding():
    rows = pad(torch.tensor([5, 6, 7]), torch.tensor([1, 0, 2]), least=3)
    assert rows.values.tolist() == [[5, 0, 0], [0, 0, 0], [6, 7, 0]]
    assert rows.real.tolist() == [[True, False, False], [False] * 3, [True, True, False]]
    laid = pad(torch.tensor([[1.0], [2.0], [3.0]]), torch.tensor([2, 1]))
    assert laid.values.squeeze(-1).tolist() == [[1, 2], [3, 0]]


def test_long_sentences_are_cut_into_equal_runs():
    texts = ["a b c d e f g. h i", "", "a b c d"]
    _, corpus = learn_vocabulary(texts, as_tokenizer("kim"), sentences=True)
    cut = cut_sentences(corpus, longest=3)
    assert cut.sentence_start.tolist() == [0, 2, 4, 7, 9, 9, 11, 13] and cut.document_start.tolist() == [0, 4, 5, 7]
    assert cut.ids is corpus.ids
    same = cut_sentences(corpus, longest=7)
    assert same.sentence_start.tolist() == corpus.sentence_start.tolist()
    assert same.document_start.tolist() == corpus.document_start.tolist()
