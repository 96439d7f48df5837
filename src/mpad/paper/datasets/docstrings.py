"""The embedded corpus: the documentation of numpy, scipy and scikit-learn, which every install has anyway.

One document per public function or class, its label the area that it belongs to. So that the label must be
understood rather than read, module paths, examples, cross-references and every word that names an area are taken
out. Re-exports and near copies are dropped. The split hangs on a checksum of each name: it is the same everywhere,
but the texts are those of the installed versions.
"""

import inspect
import re
import warnings
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import Any

from mpad.paper.datasets.dataset import Dataset, split_by_checksum

AREAS = {
    area: tuple(modules.split())
    for area, modules in {
        "arrays": "numpy",
        "clustering": "scipy.cluster.hierarchy scipy.cluster.vq sklearn.cluster",
        "estimators": (
            "sklearn.linear_model sklearn.ensemble sklearn.svm sklearn.tree sklearn.neighbors "
            "sklearn.naive_bayes sklearn.neural_network sklearn.gaussian_process "
            "sklearn.discriminant_analysis sklearn.mixture"
        ),
        "features": (
            "sklearn.preprocessing sklearn.decomposition sklearn.feature_selection "
            "sklearn.feature_extraction.text sklearn.manifold sklearn.impute sklearn.random_projection "
            "sklearn.kernel_approximation"
        ),
        "fourier": "scipy.fft scipy.fftpack numpy.fft",
        "images": "scipy.ndimage",
        "integration": "scipy.integrate",
        "interpolation": "scipy.interpolate",
        "linear algebra": "scipy.linalg numpy.linalg",
        "masking": "numpy.ma",
        "metrics": "sklearn.metrics sklearn.model_selection",
        "optimization": "scipy.optimize",
        "polynomials": (
            "numpy.polynomial numpy.polynomial.polynomial numpy.polynomial.chebyshev "
            "numpy.polynomial.legendre numpy.polynomial.hermite numpy.polynomial.laguerre"
        ),
        "randomness": "numpy.random sklearn.datasets",
        "signals": "scipy.signal scipy.signal.windows",
        "sparsity": "scipy.sparse scipy.sparse.linalg scipy.sparse.csgraph",
        "space": "scipy.spatial scipy.spatial.distance scipy.spatial.transform",
        "special functions": "scipy.special",
        "statistics": "scipy.stats scipy.stats.qmc scipy.stats.mstats",
        "strings": "numpy.char numpy.strings",
    }.items()
}
_SHORTEST, _LONGEST = 12, 160  # words
_DROPPED_SECTIONS = {"Examples", "See Also", "References", "See also"}
# Names of areas and their kin, in every form: "masked", "masking", "mask", "stats", "optimizer", "FFT" …
_GIVEAWAY = re.compile(
    r"\b\w*(?:array|cluster|estimator|featur|fourier|fft|image|integra|interpol|linear|algebra|linalg|mask|metric"
    r"|optim|polynom|random|signal|spars|spati|space|special|function|statist|stats|string|scipy|numpy|sklearn"
    r"|scikit)\w*\b",
    re.IGNORECASE,
)
_PATH = re.compile(r"\b[A-Za-z_]\w*(?:\.\w+)+\b")
_ROLE = re.compile(r":\w+(?::\w+)?:`[^`]*`|`[^`]*`_|\.\. [\w-]+::.*")


def load() -> Dataset:
    """Collect the corpus from the installed packages."""
    return split_by_checksum("docstrings", _documents())


def _documents() -> Iterator[tuple[str, str, str]]:
    """Yield (qualified name, area, text) of each function and class, once."""
    seen_objects: set[int] = set()
    seen_texts: set[str] = set()
    # Small areas first: what numpy itself re-exports belongs where it is at home.
    for area in sorted(AREAS, key=lambda area: area == "arrays"):
        for module_name in AREAS[area]:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                module = import_module(module_name)
                names = sorted(getattr(module, "__all__", None) or dir(module))
                members = [(name, _member(module, name)) for name in names if not name.startswith("_")]
            for name, member in members:
                if not _is_documented(member) or id(member) in seen_objects:
                    continue
                seen_objects.add(id(member))
                text = _prose(inspect.getdoc(member) or "")
                opening = " ".join(text.lower().split()[:25])
                if len(text.split()) >= _SHORTEST and opening not in seen_texts:
                    seen_texts.add(opening)
                    yield f"{module_name}.{name}", area, text


def _member(module: ModuleType, name: str) -> Any:
    try:
        return getattr(module, name, None)
    except ImportError:  # scikit-learn's experimental parts must be switched on first
        return None


def _is_documented(member: Any) -> bool:
    callable_kind = inspect.isroutine(member) or inspect.isclass(member) or type(member).__name__ == "ufunc"
    return callable_kind and bool(getattr(member, "__doc__", None))


def _prose(docstring: str) -> str:
    """The running text of a docstring, without what would give the area away."""
    kept: list[str] = []
    lines = docstring.split("\n")
    dropped = False
    for number, line in enumerate(lines):
        following = lines[number + 1].strip() if number + 1 < len(lines) else ""
        if line.strip() and len(following) >= 3 and set(following) <= set("-="):
            dropped = line.strip() in _DROPPED_SECTIONS
            continue
        if dropped or line.lstrip().startswith((">>>", "...")) or (line.strip() and set(line.strip()) <= set("-=")):
            continue
        kept.append(line)
    text = _ROLE.sub(" ", "\n".join(kept))
    text = _GIVEAWAY.sub(" ", _PATH.sub(" ", text))
    return " ".join(text.split()[:_LONGEST])
