"""Word graphs: build them from texts, and convert them to and from networkx, scipy and PyTorch Geometric.

>>> from mpad.graph import graphs_of_words, to_networkx
>>> graphs, vocabulary = graphs_of_words(["the cat saw the dog"])
>>> sorted(to_networkx(graphs, 0, vocabulary).edges(data="weight"))
[('cat', 'saw', 1.0), ('saw', 'the', 1.0), ('the', 'cat', 1.0), ('the', 'dog', 1.0)]
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from mpad.errors import InputError
from mpad.graph.build import GraphConfig, build_graphs
from mpad.graph.export import from_networkx, to_networkx, to_pyg, to_scipy
from mpad.graph.packed import PackedGraphs
from mpad.text.tokenizer import as_tokenizer
from mpad.text.vocabulary import Vocabulary, learn_vocabulary

__all__ = [
    "GraphConfig",
    "PackedGraphs",
    "build_graphs",
    "from_networkx",
    "graphs_of_words",
    "to_networkx",
    "to_pyg",
    "to_scipy",
]


def graphs_of_words(
    texts: Sequence[str],
    tokenizer: str | Callable[[str], Iterable[str]] = "auto",
    window: int = 2,
    directed: bool = True,
    weighting: Literal["count", "distance"] = "count",
    per: Literal["document", "sentence"] = "document",
) -> tuple[PackedGraphs, Vocabulary]:
    """Turn texts into word graphs.

    Parameters
    ----------
    texts : sequence of str
        The documents.
    tokenizer : str or callable, default="auto"
        The name of a tokenizer, or a function from a text to its words; "auto" chooses by the texts.
    window : int, default=2
        Words less than `window` places apart are linked.
    directed : bool, default=True
        Edges follow the text; False links each pair both ways.
    weighting : {"count", "distance"}, default="count"
        A co-occurrence adds 1, or 1 / distance, to the weight of its edge.
    per : {"document", "sentence"}, default="document"
        The unit that becomes one graph.

    Returns
    -------
    graphs : PackedGraphs
    vocabulary : Vocabulary
        The words of the nodes.

    """
    if isinstance(texts, str):
        raise InputError("expected many documents, found one string; put it in a list: [text]")
    if per not in ("document", "sentence"):
        raise InputError(f"per must be 'document' or 'sentence', not '{per}'")
    vocabulary, corpus = learn_vocabulary(texts, as_tokenizer(tokenizer, texts), sentences=per == "sentence")
    return build_graphs(corpus, GraphConfig(window, directed, weighting)), vocabulary
