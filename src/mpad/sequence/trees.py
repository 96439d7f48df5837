"""Trees in brackets → binary trees packed end to end → a batch of them, level by level.

A tree is `(3 (2 It) (4 works))`: a grade from 0 to 4 at each node, two children inside, one word at a leaf.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mpad.errors import InputError
from mpad.graph.batch import members
from mpad.text.tokenizer import TOKENIZERS, CallableTokenizer
from mpad.text.vocabulary import EncodedCorpus

TREE_WORDS = "mpad.sequence.trees:tree_words"  # the tokenizer of models that read trees
_PIECE = re.compile(r"[()]|[^\s()]+")
_EXPECTED = (
    "expected a binary tree in brackets with a grade from 0 to 4 at each node, such as (3 (2 It) (4 works)); models "
    "over trees need parsed text, as the Stanford sentiment treebank has it"
)


@dataclass(frozen=True)
class Tree:
    """One tree, its nodes in post-order: children before parents, the root last."""

    words: list[str]  # of the leaves, in order
    leaf: list[int]  # place among the leaves; -1 for an inner node
    left: list[int]  # node; -1 for a leaf
    right: list[int]
    height: list[int]  # 0 for a leaf
    grade: list[int]


def parse_tree(text: str) -> Tree:
    """Read a tree in brackets."""
    tree = Tree([], [], [], [], [], [])
    open_grades: list[int] = []
    children: list[list[int]] = [[]]
    pieces = iter(_PIECE.findall(text))
    for piece in pieces:
        if piece == "(":
            grade = next(pieces, "")
            if grade not in tuple("01234") or (not open_grades and children[0]):
                raise InputError(f"{_EXPECTED}; found {text[:60]!r}")
            open_grades.append(int(grade))
            children.append([])
        elif piece == ")" and open_grades:
            below = children.pop()
            if len(below) not in (1, 2) or (len(below) == 1 and tree.height[below[0]] > 0):
                raise InputError(f"{_EXPECTED}; found a node with {len(below)} children in {text[:60]!r}")
            if len(below) == 2:
                _add(tree, -1, below[0], below[1], open_grades[-1])
            else:
                tree.grade[below[0]] = open_grades[-1]  # a leaf was made when its word was read
            open_grades.pop()
            children[-1].append(below[0] if len(below) == 1 else len(tree.leaf) - 1)
        elif open_grades and piece != ")":
            tree.words.append(piece.lower())
            _add(tree, len(tree.words) - 1, -1, -1, open_grades[-1])
            children[-1].append(len(tree.leaf) - 1)
        else:
            raise InputError(f"{_EXPECTED}; found {text[:60]!r}")
    if open_grades or len(children[0]) != 1:
        raise InputError(f"{_EXPECTED}; found {text[:60]!r}")
    return tree


def _add(tree: Tree, leaf: int, left: int, right: int, grade: int) -> None:
    tree.leaf.append(leaf)
    tree.left.append(left)
    tree.right.append(right)
    tree.height.append(0 if leaf >= 0 else 1 + max(tree.height[left], tree.height[right]))
    tree.grade.append(grade)


def tree_words(text: str) -> list[str]:
    """The words at the leaves of a tree, lower-cased."""
    return parse_tree(text).words if text.strip() else []


TOKENIZERS[TREE_WORDS] = lambda: CallableTokenizer(tree_words)


@dataclass(frozen=True)
class PackedTrees:
    """Trees end to end: tree t owns nodes node_start[t]:node_start[t + 1], its root the last of them."""

    word: NDArray[np.int64]  # (n_nodes,) word id; -1 for an inner node
    left: NDArray[np.int64]  # (n_nodes,) node of its own tree
    right: NDArray[np.int64]
    height: NDArray[np.int64]
    target: NDArray[np.int64]  # (n_nodes,) class number; -1 where the grade is of none
    node_start: NDArray[np.int64]  # (n_trees + 1,)


def pack_trees(texts: Sequence[str], corpus: EncodedCorpus, n_classes: int) -> PackedTrees:
    """Parse texts whose words have been encoded. Grades are classes: all five, or bad and good without the middle."""
    if n_classes not in (2, 5):
        raise InputError(f"trees are graded from 0 to 4: expected 5 classes, or 2 (bad and good), found {n_classes}")
    class_of = np.arange(5) if n_classes == 5 else np.array([0, 0, -1, 1, 1])
    trees = [parse_tree(text) for text in texts]
    first = corpus.sentence_start[corpus.document_start]
    word = [
        np.where(np.array(tree.leaf) >= 0, np.append(corpus.ids[start:end], -1)[np.array(tree.leaf)], -1)
        for tree, start, end in zip(trees, first[:-1], first[1:], strict=True)
    ]

    def joined(name: str) -> NDArray[np.int64]:
        return np.concatenate([np.array(getattr(tree, name), np.int64) for tree in trees])

    starts = np.cumsum([0, *[len(tree.leaf) for tree in trees]])
    fields = joined("left"), joined("right"), joined("height"), class_of[joined("grade")]
    return PackedTrees(np.concatenate(word).astype(np.int64), *fields, starts)


@dataclass(frozen=True)
class TreeBatch:
    """Some trees as one forest."""

    word: Tensor  # (n_nodes,) int64; -1 for an inner node
    left: Tensor  # (n_nodes,) int64, node of the batch; meaningless for a leaf
    right: Tensor
    height: Tensor
    target: Tensor  # (n_nodes,) class number, or -1
    root: Tensor  # (n_trees,) int64, node

    def levels(self) -> list[Tensor]:
        """Nodes of each height, from the leaves up."""
        order = torch.argsort(self.height, stable=True)
        return list(order.split(torch.bincount(self.height).tolist()))


class TreeTensors:
    """Packed trees on a device."""

    def __init__(self, trees: PackedTrees, device: torch.device | str = "cpu") -> None:
        self.device = torch.device(device)
        names = ("word", "left", "right", "height", "target", "node_start")
        parts = (torch.from_numpy(getattr(trees, name)).to(device) for name in names)
        self._word, self._left, self._right, self._height, self._target, starts = parts
        self._first, self._size = starts[:-1], starts.diff()

    def __len__(self) -> int:
        return self._first.shape[0]

    def document_sizes(self, documents: Tensor) -> Tensor:
        """Nodes of some trees: (n,) int64."""
        return self._size[documents]

    def take(self, documents: Tensor) -> TreeBatch:
        """Cut out these trees, in this order."""
        size = self._size[documents]
        nodes, owner = members(self._first[documents], size)
        ends = size.cumsum(0)
        shift = (ends - size)[owner]
        moved = self._left[nodes] + shift, self._right[nodes] + shift
        return TreeBatch(self._word[nodes], *moved, self._height[nodes], self._target[nodes], ends - 1)
