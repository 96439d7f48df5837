import pytest
import torch

from mpad.errors import InputError
from mpad.sequence.trees import TreeTensors, pack_trees, parse_tree, tree_words
from mpad.text.tokenizer import as_tokenizer
from mpad.text.vocabulary import learn_vocabulary

WORKS = "(3 (2 It) (4 (2 really) (3 Works)))"


def test_a_tree_in_post_order():
    tree = parse_tree(WORKS)
    assert tree.words == ["it", "really", "works"] and tree_words(WORKS) == tree.words
    assert tree.leaf == [0, 1, 2, -1, -1] and tree.grade == [2, 2, 3, 4, 3]
    assert tree.left == [-1, -1, -1, 1, 0] and tree.right == [-1, -1, -1, 2, 3] and tree.height == [0, 0, 0, 1, 2]
    assert parse_tree("(2 alone)").grade == [2]


@pytest.mark.parametrize(
    "text", ["It really works", "(7 It)", "(3 (2 It)", "(3 (2 a) (2 b) (2 c))", "(2 a) (2 b)", ")", "(3 )"]
)
def test_what_is_no_tree_says_what_is_needed(text):
    with pytest.raises(InputError, match="expected a binary tree in brackets"):
        parse_tree(text)


def packed(*texts, n_classes=5):
    vocabulary, corpus = learn_vocabulary(texts, as_tokenizer("mpad.sequence.trees:tree_words"))
    return pack_trees(texts, corpus, n_classes), vocabulary


def test_a_batch_is_a_forest():
    trees, vocabulary = packed(WORKS, "(1 (2 works) (0 not))")
    batch = TreeTensors(trees).take(torch.tensor([1, 0]))
    words = [vocabulary.words[k] if k >= 0 else None for k in batch.word.tolist()]
    assert words == ["works", "not", None, "it", "really", "works", None, None]
    assert batch.root.tolist() == [2, 7] and batch.left[batch.root].tolist() == [0, 3]
    assert [level.tolist() for level in batch.levels()] == [[0, 1, 3, 4, 5], [2, 6], [7]]
    assert batch.target.tolist() == [2, 0, 1, 2, 2, 3, 4, 3]


def test_grades_as_two_classes():
    trees, _ = packed(WORKS, n_classes=2)
    assert trees.target.tolist() == [-1, -1, 1, 1, 1]
    with pytest.raises(InputError, match="expected 5 classes, or 2"):
        packed(WORKS, n_classes=3)
