import torch

from mpad._text.tokenizer import as_tokenizer
from mpad._text.vocabulary import learn_vocabulary
from mpad.sequence.batch import WordTensors, pad


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
