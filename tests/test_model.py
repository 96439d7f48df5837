from dataclasses import fields, replace

import numpy as np
import pytest
import torch

from mpad.config import PRESETS, VARIANTS, MPADConfig
from mpad.errors import InputError
from mpad.graph import graphs_of_words
from mpad.graph.batch import CorpusTensors, GraphBatch
from mpad.model import MPAD, WordGraph

TEXTS = ["a b c a b d. e f", "", "x", "b a. c. d e f g. a b", "the end. is near", "c c c"]


def network(variant="mpad", **options):
    """Its width, 16, is one that compiled kernels take."""
    per = "document" if variant == "mpad" else "sentence"
    graphs, vocabulary = graphs_of_words(TEXTS, per=per)
    torch.manual_seed(0)
    model = MPAD(MPADConfig(3, 5, vocabulary.n_rows, variant, **{"hidden": 16, **options})).eval()
    with torch.no_grad():
        model.vectors.copy_(torch.randn(model.vectors.shape))
        for module in model.modules():  # statistics as after training
            if isinstance(module, torch.nn.BatchNorm1d):
                module.running_mean.normal_()
                module.running_var.uniform_(0.5, 2)
    return model, CorpusTensors(graphs)


def all_options():
    for variant in VARIANTS:
        for preset in PRESETS.values():
            yield variant, preset.network
            yield variant, {**preset.network, "master_node": False}
            yield variant, {**preset.network, "combine": "identity", "steps": 3}
            yield variant, {**preset.network, "master_skip": False, "renormalise": False}


@pytest.mark.parametrize(("variant", "options"), list(all_options()))
def test_alone_or_in_any_batch_the_logits_are_the_same(variant, options):
    model, corpus = network(variant, **options)
    with torch.no_grad():
        alone = torch.cat([model(corpus.take(torch.tensor([d]))).logits for d in range(len(TEXTS))])
        for order in ([0, 1, 2, 3, 4, 5], [5, 3, 1, 0, 2, 4], [4, 4, 1]):
            together = model(corpus.take(torch.tensor(order))).logits
            assert torch.allclose(together, alone[order], atol=1e-5)


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_order_of_nodes_does_not_matter(variant):
    model, corpus = network(variant)
    batch = corpus.take(torch.arange(len(TEXTS)))
    shuffled = torch.randperm(batch.words.shape[0], generator=torch.Generator().manual_seed(0))
    place = torch.empty_like(shuffled)
    place[shuffled] = torch.arange(len(shuffled))
    moved = replace(
        batch,
        words=batch.words[shuffled],
        owner=batch.owner[shuffled],
        source=place[batch.source],
        target=place[batch.target],
    )
    with torch.no_grad():
        assert torch.allclose(model(batch).logits, model(moved).logits, atol=1e-5)


@pytest.mark.parametrize("variant", VARIANTS)
def test_attention_sums_to_one(variant):
    model, corpus = network(variant)
    batch = corpus.take(torch.arange(len(TEXTS)))
    output = model(batch)
    for alpha in output.word_attention:
        sums = torch.zeros(batch.n_graphs).index_add(0, batch.owner, alpha)
        assert torch.allclose(sums, (batch.size > 0).float(), atol=1e-6)
    if variant == "mpad":
        assert output.sentence_attention is None
    else:
        for alpha in output.sentence_attention:
            sums = torch.zeros(batch.n_documents).index_add(0, batch.graph_owner, alpha)
            assert torch.allclose(sums, torch.ones(batch.n_documents), atol=1e-6)


def logits(model, corpus):
    with torch.no_grad():
        return model(corpus.take(torch.arange(len(TEXTS)))).logits


def reversed_edges(batch: GraphBatch) -> GraphBatch:
    order = torch.argsort(batch.source, stable=True)
    return replace(batch, source=batch.target[order], target=batch.source[order], weight=batch.weight[order])


class TestAblations:
    """Each changes what it should, and nothing else."""

    def test_steps_add_rounds_and_readouts(self):
        for steps in (1, 2, 3, 4):
            model, _ = network(steps=steps)
            assert len(model.words.rounds) == len(model.words.readout.attention) == steps
            assert model.words.readout.dense.in_features == steps * 32

    def test_direction_matters_when_directed(self):
        model, corpus = network()
        batch = corpus.take(torch.arange(len(TEXTS)))
        assert not torch.allclose(model(batch).logits, model(reversed_edges(batch)).logits, atol=1e-4)

    def test_undirected_graphs_do_not_know_direction(self):
        forth, _ = graphs_of_words(TEXTS, directed=False)
        model, _ = network()
        batch = CorpusTensors(forth).take(torch.arange(len(TEXTS)))
        assert torch.allclose(model(batch).logits, model(reversed_edges(batch)).logits, atol=1e-5)

    def test_only_a_master_carries_news_between_far_words(self):
        """The two ends of a document hear of each other within two steps by the master alone."""
        for master in (True, False):
            model, _ = network(master_node=master, hidden=32)
            graphs, vocabulary = graphs_of_words([*TEXTS, "a b c d e", "a b c d x"])
            batch = CorpusTensors(graphs).take(torch.tensor([len(TEXTS), len(TEXTS) + 1]))
            h, graph = model.embed(batch), WordGraph(batch, master, True)
            for message_passing in model.words.rounds:
                h = message_passing(h, graph)
            first, second = h[: batch.words.shape[0]][batch.words == vocabulary.id("a")]
            assert torch.allclose(first, second, atol=1e-6) != master

    def test_no_master_means_half_the_readout(self):
        assert network(master_node=False)[0].words.readout.dense.in_features == 2 * 16
        assert network(master_skip=False)[0].words.readout.dense.in_features == 2 * 16
        assert network()[0].words.readout.dense.in_features == 2 * 32

    def test_renormalisation_makes_a_mean_of_a_sum(self):
        """Doubling every co-occurrence leaves a mean of neighbours alone, but not a sum."""
        for renormalise, same in ((True, True), (False, False)):
            model, corpus = network(master_node=False, renormalise=renormalise)
            batch = corpus.take(torch.arange(len(TEXTS)))
            doubled = replace(batch, weight=2 * batch.weight)
            assert torch.allclose(model(batch).logits, model(doubled).logits, atol=1e-5) == same

    def test_neighbours_only_drops_the_gate(self):
        with_gate, without = network()[0], network(combine="identity")[0]
        names = {name for name, _ in without.named_parameters()}
        dropped = {name for name, _ in with_gate.named_parameters()} - names
        assert dropped and all(".gate." in name or ".project." in name for name in dropped)


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_hierarchy_changes_the_answer(variant):
    flat, deep = logits(*network("mpad")), logits(*network(variant))
    assert torch.allclose(flat, deep) == (variant == "mpad")


def test_path_hears_order_and_clique_does_not():
    for variant, order_matters in (("path", True), ("clique", False), ("sentence-att", False)):
        model, _ = network(variant)
        graphs, _ = graphs_of_words([*TEXTS, "a b. c d. e f", "e f. c d. a b"], per="sentence")
        batch = CorpusTensors(graphs).take(torch.tensor([len(TEXTS), len(TEXTS) + 1]))
        one, other = model(batch).logits
        assert torch.allclose(one, other, atol=1e-5) != order_matters


def test_learnt_vectors_get_gradients_and_fixed_ones_do_not():
    learnt, corpus = network(learn_vectors=True)
    learnt.train()
    learnt(corpus.take(torch.arange(len(TEXTS)))).logits.sum().backward()
    assert learnt.vectors.grad.abs().sum() > 0
    assert "vectors" not in dict(network()[0].named_parameters())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"variant": "star"}, "known: mpad, sentence-att, clique, path"),
        ({"combine": "sum"}, "'gru' or 'identity'"),
        ({"steps": 0}, "from 1 to 100"),
        ({"dropout": 1.0}, "below 1"),
    ],
)
def test_bad_configurations(options, said):
    with pytest.raises(InputError, match=said):
        MPADConfig(**{"n_classes": 2, "vector_width": 3, "n_words": 4, **options})


def test_memory_of_a_batch_is_its_words_not_its_longest_document():
    texts = ["a b c"] * 50 + [" ".join(f"w{k}" for k in range(2000))]
    graphs, _ = graphs_of_words(texts)
    batch = CorpusTensors(graphs).take(torch.arange(len(texts)))
    assert batch.words.shape[0] == 50 * 3 + 2000 == int(np.diff(graphs.node_start).sum())


@pytest.mark.parametrize(("variant", "options"), list(all_options()))
def test_the_network_is_exported(variant, options):
    """torch.export traces the plain network, for batches of other sizes too."""
    model, corpus = network(variant, **options)
    names = [field.name for field in fields(GraphBatch) if field.name != "rows"]  # None here

    class Exported(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, *tensors):
            return self.model(GraphBatch(**dict(zip(names, tensors, strict=True)))).logits

    def tensors(documents):
        batch = corpus.take(torch.tensor(documents))
        return tuple(getattr(batch, name) for name in names)

    sizes = {name: torch.export.Dim.AUTO for name in names}
    with torch.no_grad():
        shapes = (tuple({0: sizes[name]} for name in names),)
        program = torch.export.export(Exported(), tensors([0, 3, 4, 5, 2]), dynamic_shapes=shapes)
        other = tensors([3, 3, 4])
        assert torch.allclose(program.module()(*other), Exported()(*other), atol=1e-5)


def test_forward_hooks_fire():
    """Nothing in the network is a module in name only."""
    model, corpus = network("clique")
    seen = set()
    containers = torch.nn.ModuleList, torch.nn.Identity
    leaves = {name for name, module in model.named_modules() if not isinstance(module, containers)}
    for name, module in model.named_modules():
        module.register_forward_hook(lambda *_, name=name: seen.add(name))
    model(corpus.take(torch.arange(len(TEXTS))))
    assert leaves <= seen
