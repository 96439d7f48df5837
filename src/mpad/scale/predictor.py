"""Predictor: a picklable callable for the batches of an engine."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mpad.errors import InputError, StoreError
from mpad.scale.columns import ColumnPredictor, Kind, PredictOptions
from mpad.scale.text_model import OwnTokenizer, TextModel
from mpad.storage.model_folder import SUMS, digest, read_small

if TYPE_CHECKING:
    import pyarrow

_MAX_LOADED = 4  # models per process
_loaded: dict[tuple[Any, ...], TextModel] = {}  # cached, as engines unpickle a Predictor for every task


class Predictor:
    """Callable that adds predictions to batches of documents, one row per row, in order.

    It works with any engine that maps a function over batches: `dataset.map_batches(Predictor("my-model"))` of Ray
    Data, `mapInPandas` of Spark (see also `mpad.scale.spark`), or a loop over pyarrow record batches. A batch is a dict
    of NumPy arrays, a pandas DataFrame, a pyarrow Table or a RecordBatch; the result has the same type.

    Only the folder name and the options are pickled. Each process loads the model once, at its first batch, and
    without torch if the model allows it.

    Parameters
    ----------
    folder : str or Path
        Folder of a saved model, readable under this name by every worker.
    text : str, default="text"
        Column with the texts; a missing text counts as empty.
    proba : bool, default=False
        Add the probability of every class, as columns `p(CLASS)`.
    top : int from 1, optional
        Add this many of the most probable classes, as columns `class K` and `probability K`.
    reject_below : float from 0 to 1, optional
        Leave the label empty if its probability is below this value.
    threshold : float from 0 to 1, optional
        Multi-label models: one threshold for all labels, instead of the fitted ones.
    tokenizer : str, Tokenizer or callable, optional
        The tokenizer of the model, if it was trained with a custom one.

    Notes
    -----
    The columns are `label` and `probability`. If the batch already has a column of that name, it is kept, and the new
    one is called `predicted label`.

    Examples
    --------
    >>> from mpad.scale import Predictor
    >>> Predictor("my-model")({"text": ["a moving film"]})           # doctest: +SKIP

    """

    def __init__(
        self,
        folder: str | Path,
        text: str = "text",
        *,
        proba: bool = False,
        top: int | None = None,
        reject_below: float | None = None,
        threshold: float | None = None,
        tokenizer: OwnTokenizer = None,
    ) -> None:
        self.folder, self.text, self.tokenizer = Path(folder).absolute(), text, tokenizer
        self.options = PredictOptions(proba, top, reject_below, threshold)
        self._model: ColumnPredictor | None = None  # not pickled

    def __call__(self, batch: Any) -> Any:
        """Return the batch with the columns of the predictions appended."""
        import pyarrow

        is_arrow, is_pandas = isinstance(batch, (pyarrow.Table, pyarrow.RecordBatch)), hasattr(batch, "assign")
        if not (is_arrow or is_pandas or isinstance(batch, Mapping)):
            raise InputError(
                "expected a dict of arrays, a pandas DataFrame, a pyarrow Table or RecordBatch, "
                f"found {type(batch).__name__}"
            )
        names = batch.schema.names if is_arrow else list(batch)
        cells = self._text_column(names, batch)
        texts = fill_missing(cells.to_pylist() if is_arrow else cells, self.text)
        if is_arrow:
            schema = pyarrow.schema([*batch.schema, *arrow_fields(self.model, names)], batch.schema.metadata)
            return type(batch).from_arrays([*batch.columns, *predict_arrow(self.model, texts)], schema=schema)
        columns = zip(self.fields(names).items(), self.model.predict(texts), strict=True)
        added = {name: _array(cells, kind) for (name, kind), cells in columns}
        return batch.assign(**added) if is_pandas else {**batch, **added}

    def fields(self, existing: Sequence[str] = ()) -> dict[str, Kind]:
        """Return names and types of the added columns, distinct from the existing ones."""
        return {unique_column(name, existing): kind for name, kind in self.model.fields.items()}

    @property
    def model(self) -> ColumnPredictor:
        """Model of this process, loaded on first use."""
        if self._model is None:
            self._model = load_cached(self.folder, self.tokenizer, self.options, model_digest(self.folder))
        return self._model

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_model": None}

    def _text_column(self, names: Sequence[str], batch: Any) -> Any:
        if names.count(self.text) != 1:
            count = "two columns" if self.text in names else "no column"
            raise InputError(
                f"{count} '{self.text}' in this batch (there are: {', '.join(map(str, names))}); set text=…"
            )
        return batch[self.text]


def fill_missing(cells: Iterable[Any], column: str) -> list[str]:
    """Return the texts of a column, with empty strings for missing ones."""
    texts = [cell if isinstance(cell, str) else "" if _is_missing(cell) else cell for cell in cells]
    wrong = next((cell for cell in texts if not isinstance(cell, str)), None)
    if wrong is not None:
        raise InputError(
            f"column '{column}' holds {type(wrong).__name__} ({wrong!r:.40}), not text; name another with text=…"
        )
    return [str(text) for text in texts]  # also converts NumPy strings


def unique_column(name: str, existing: Sequence[str]) -> str:
    """Return a column name distinct from the existing ones."""
    while name in existing:
        name = f"predicted {name}"
    return name


def predict_arrow(model: ColumnPredictor, texts: list[str]) -> list[Any]:
    """Return predictions as pyarrow arrays."""
    import pyarrow

    types = [field.type for field in arrow_fields(model, ())]
    return [pyarrow.array(cells, kind) for cells, kind in zip(model.predict(texts), types, strict=True)]


def arrow_fields(model: ColumnPredictor, existing: Sequence[str]) -> "list[pyarrow.Field]":
    """Return the pyarrow fields of the predictions, with names distinct from the existing ones."""
    import pyarrow

    strings = pyarrow.list_(pyarrow.string())
    return [
        pyarrow.field(unique_column(name, existing), strings if kind == "strings" else pyarrow.type_for_alias(kind))
        for name, kind in model.fields.items()
    ]


def load_cached(folder: Path, tokenizer: OwnTokenizer, options: PredictOptions, digest: str) -> ColumnPredictor:
    """Return the model of a folder and digest, loaded once per process."""
    key = folder, tokenizer, digest
    if key not in _loaded:
        while len(_loaded) >= _MAX_LOADED:
            del _loaded[next(iter(_loaded))]
        loaded = TextModel(folder, tokenizer)
        if model_digest(folder) != digest:
            raise StoreError(f"{folder}: holds another model than when the work began; begin again")
        _loaded[key] = loaded
    return ColumnPredictor(_loaded[key], options)


def model_digest(folder: Path) -> str:
    """Return a short digest of all files of a model folder."""
    if not folder.is_dir():
        raise StoreError(f"{folder}: no such folder; expected a model that every worker can read")
    if (folder / SUMS).is_file():
        return hashlib.sha256(read_small(folder / SUMS)).hexdigest()[:16]
    files = sorted(file for file in folder.iterdir() if file.is_file())  # format 1 has no checksums
    return hashlib.sha256("".join(f"{digest(file)} {file.name}\n" for file in files).encode()).hexdigest()[:16]


def _is_missing(cell: Any) -> bool:
    return cell is None or type(cell).__name__ in ("NAType", "NaTType") or (isinstance(cell, float) and cell != cell)


def _array(cells: list[Any], kind: Kind) -> np.ndarray[Any, Any]:
    """Return cells as a NumPy array; strings, lists and columns with gaps as objects."""
    if kind in ("int64", "double", "bool") and None not in cells:
        return np.array(cells, kind)
    result = np.empty(len(cells), object)
    for k, cell in enumerate(cells):  # assigning a slice would turn lists of equal length into a matrix
        result[k] = cell
    return result
