import pytest
import torch

from mpad import native
from mpad.graph import graphs_of_words
from mpad.graph.batch import CorpusTensors

TEXTS = ["a b c a b d. e f", "", "x", "b a. c. d e f g. a b", "the end. is near", "c c c", "a b. b a. a b a c a"]

pytestmark = pytest.mark.skipif(native.library is None, reason="the compiled passes were not built")


@pytest.mark.parametrize("per", ["document", "sentence"])
@pytest.mark.parametrize("documents", [[3, 1, 6, 0, 3], [2], [1], []])
def test_a_batch_is_the_one_that_torch_cuts(per, documents, monkeypatch):
    corpus = CorpusTensors(graphs_of_words(TEXTS, per=per)[0])
    chosen = torch.tensor(documents, dtype=torch.int64)
    ours = corpus.take(chosen)
    monkeypatch.setattr(native, "library", None)
    theirs = corpus.take(chosen)
    for name in ("words", "owner", "size", "source", "target", "weight", "graph_owner", "graph_count"):
        one, other = getattr(ours, name), getattr(theirs, name)
        assert torch.equal(one, other.to(one.dtype)), name
        assert one.dtype == other.dtype, name


def test_documents_that_are_not_there():
    corpus = CorpusTensors(graphs_of_words(TEXTS)[0])
    with pytest.raises(IndexError):
        corpus.take(torch.tensor([0, len(TEXTS)]))
