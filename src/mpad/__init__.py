"""Explainable text classification with graph neural networks.

Each document becomes a graph of its words; every prediction shows the words and word pairs behind it.

>>> from mpad import MPADClassifier
>>> classifier = MPADClassifier().fit(texts, labels)    # doctest: +SKIP
>>> classifier.predict(["a new document"])              # doctest: +SKIP
>>> classifier.explain("a new document").show()         # doctest: +SKIP
"""

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from mpad._version import __version__

if TYPE_CHECKING:
    from mpad.data.readers import read_documents
    from mpad.environment import show_versions
    from mpad.estimator.classifier import MPADClassifier
    from mpad.estimator.encoder import MPADEncoder
    from mpad.evaluate.comparison import compare
    from mpad.evaluate.cross_validation import cross_validate
    from mpad.explain import Explanation
    from mpad.graph import PackedGraphs, graphs_of_words
    from mpad.paper.datasets import load_dataset
    from mpad.training.stream import StreamOptions

# A thread of torch's that waits for the others spins for milliseconds, unless this is said before torch is loaded. Two
# processes with two threads each on two cores then take four times as long as one after the other (docs/security.md).
if "torch" not in sys.modules and not {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"} & set(os.environ):
    os.environ["GOMP_SPINCOUNT"] = "2000"

# Public names in the order of the flow. They are imported when first used: the graph builder alone does not
# wait for torch.
_HOME = {
    "read_documents": "mpad.data.readers",
    "graphs_of_words": "mpad.graph",
    "PackedGraphs": "mpad.graph",
    "MPADClassifier": "mpad.estimator.classifier",
    "MPADEncoder": "mpad.estimator.encoder",
    "StreamOptions": "mpad.training.stream",
    "cross_validate": "mpad.evaluate.cross_validation",
    "compare": "mpad.evaluate.comparison",
    "Explanation": "mpad.explain",
    "load_dataset": "mpad.paper.datasets",
    "show_versions": "mpad.environment",
}

__all__ = [
    "read_documents",
    "graphs_of_words",
    "PackedGraphs",
    "MPADClassifier",
    "MPADEncoder",
    "StreamOptions",
    "cross_validate",
    "compare",
    "Explanation",
    "load_dataset",
    "show_versions",
    "__version__",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'mpad' has no attribute '{name}'")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__
