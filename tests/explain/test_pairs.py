import numpy as np
import pytest

from mpad import MPADClassifier
from mpad.errors import InputError
from mpad.explain.pairs import pair_share
from mpad.linear.potentials import part_documents

OPTIONS = {"hidden": 8, "vector_size": 8, "max_epochs": 6, "random_state": 0, "device": "cpu"}


@pytest.fixture(scope="module")
def model(fruit_corpus):
    return MPADClassifier(**OPTIONS).fit(*fruit_corpus).model_


def test_shares_of_two_classes_by_hand(model, fruit_corpus):
    texts = fruit_corpus[0][:20]
    share = pair_share(model, texts)
    graphs = model.pack(texts)
    nodes, edges = (part[:, 0] - part[:, 1] for part in model.potentials.shares(graphs))
    assert share.linear == pytest.approx(np.abs(edges).sum() / (np.abs(nodes).sum() + np.abs(edges).sum()), rel=1e-5)
    assert 0 < share.linear < 1 and 0 <= share.changed <= 1 and share.documents == 20
    logits = model.answer(graphs).logits
    leads = np.abs(logits[:, 0] - logits[:, 1])
    assert len(part_documents(graphs)[1]) > 0 and share.model < 1 and leads.sum() > 0


def test_a_model_of_words_alone_gives_pairs_nothing(fruit_corpus):
    """With a window of one word there are no edges, and nothing to lose without them."""
    model = MPADClassifier(window=1, **OPTIONS).fit(*fruit_corpus).model_
    share = pair_share(model, fruit_corpus[0][:10])
    assert (share.linear, share.model, share.network, share.changed) == (0.0, 0.0, 0.0, 0.0)


def test_without_a_linear_part_there_is_no_exact_share(fruit_corpus):
    model = MPADClassifier(preset="paper", **OPTIONS).fit(*fruit_corpus).model_
    share = pair_share(model, fruit_corpus[0][:10])
    assert share.linear is None and share.model == pytest.approx(share.network)


def test_nothing_to_measure(model):
    with pytest.raises(InputError, match="at least one document"):
        pair_share(model, [])
