"""Predictor: what an engine calls with every batch."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mpad.errors import InputError, StoreError
from mpad.scale.answers import Answerer, Asked, Kind, OwnTokenizer, load_answerer
from mpad.storage.checksums import SUMS, digest, read_small

if TYPE_CHECKING:
    import pyarrow

_NUMPY = {"int64": np.int64, "double": np.float64, "bool": np.bool_}
_MODELS = 4  # that a process keeps
_loaded: dict[tuple[Any, ...], Answerer] = {}  # of this process: engines unpickle a Predictor for every task


class Predictor:
    """Adds `label` and `probability` to batches of documents: a row for a row, in their order.

    For the engines that people already run: `dataset.map_batches(Predictor("my-model"))` of Ray Data, `mapInPandas` of
    Spark (see `mpad.scale.spark`), a loop over record batches of pyarrow. It takes a dict of NumPy arrays, a pandas
    DataFrame, a pyarrow Table or RecordBatch, and gives the same form back. A missing text counts as empty.

    What is pickled is the name of the folder; a process reads the model when its first batch comes, once, by NumPy
    alone where the model can be. The options are those of `mpad predict`: `proba` (the probability of every class),
    `top` (that many of the likeliest classes), `reject_below` and, of many labels, `threshold`. A column that is there
    already stays; the answer's is then named `predicted label`.
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
        self.asked = Asked(proba, top, reject_below, threshold)
        self._answerer: Answerer | None = None  # never pickled

    def __call__(self, batch: Any) -> Any:
        """The batch with the answer's columns behind its own."""
        from pyarrow import RecordBatch, Table

        if isinstance(batch, (Table, RecordBatch)):
            return self._arrow(batch)
        if isinstance(batch, Mapping):
            return {**batch, **self._columns(list(batch), batch)}
        if hasattr(batch, "assign") and hasattr(batch, "columns"):  # pandas, which need not be installed
            return batch.assign(**self._columns(list(batch.columns), batch))
        raise InputError(
            "expected a dict of arrays, a pandas DataFrame, a pyarrow Table or RecordBatch, "
            f"found {type(batch).__name__}"
        )

    def fields(self, there: Sequence[str] = ()) -> dict[str, Kind]:
        """Names and kinds of the columns that are added to those that are there."""
        return {name_beside(name, there): kind for name, kind in self.answerer.fields.items()}

    @property
    def answerer(self) -> Answerer:
        """The model, read when it is first needed in this process."""
        if self._answerer is None:
            self._answerer = answerer_of(self.folder, self.tokenizer, self.asked, model_digest(self.folder))
        return self._answerer

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_answerer": None}

    def _columns(self, there: list[str], batch: Any) -> dict[str, Any]:
        texts = as_filled(self._text_of(there, batch), self.text)
        answerer = self.answerer
        answers = answerer.answer(texts)
        return {
            name_beside(name, there): _array(cells, kind)
            for (name, kind), cells in zip(answerer.fields.items(), answers, strict=True)
        }

    def _arrow(self, batch: "pyarrow.Table | pyarrow.RecordBatch") -> Any:
        names = batch.schema.names
        column = self._text_of(names, batch)
        answerer = self.answerer
        arrays = arrow_columns(answerer, as_filled(column.to_pylist(), self.text))
        schema = batch.schema
        for field in arrow_fields(answerer, names):
            schema = schema.append(field)
        return type(batch).from_arrays([*batch.columns, *arrays], schema=schema)

    def _text_of(self, names: Sequence[str], batch: Any) -> Any:
        if names.count(self.text) != 1:
            what = "two columns" if self.text in names else "no column"
            raise InputError(
                f"{what} '{self.text}' in this batch (there are: {', '.join(map(str, names))}); set text=…"
            )
        return batch[self.text]


def as_filled(cells: Iterable[Any], column: str) -> list[str]:
    """Texts of a column; a missing one is empty."""
    texts = [cell if isinstance(cell, str) else "" if _missing(cell) else cell for cell in cells]
    wrong = next((cell for cell in texts if not isinstance(cell, str)), None)
    if wrong is not None:
        raise InputError(
            f"column '{column}' holds {type(wrong).__name__} ({wrong!r:.40}), not text; name another with text=…"
        )
    return [str(text) for text in texts]  # NumPy's strings too


def name_beside(name: str, there: Sequence[str]) -> str:
    """The name of an answer's column beside those that are there."""
    return f"predicted {name}" if name in there else name


def arrow_columns(answerer: Answerer, texts: list[str]) -> list[Any]:
    """Answers as pyarrow's arrays."""
    import pyarrow

    types = [field.type for field in arrow_fields(answerer, ())]
    return [pyarrow.array(cells, kind) for cells, kind in zip(answerer.answer(texts), types, strict=True)]


def arrow_fields(answerer: Answerer, there: Sequence[str]) -> "list[pyarrow.Field]":
    """The answer's columns beside those that are there, as pyarrow describes them."""
    import pyarrow

    types = {"double": pyarrow.float64(), "bool": pyarrow.bool_(), "strings": pyarrow.list_(pyarrow.string())}
    return [
        pyarrow.field(name_beside(name, there), types[kind] if kind in types else getattr(pyarrow, kind)())
        for name, kind in answerer.fields.items()
    ]


def answerer_of(folder: Path, tokenizer: OwnTokenizer, asked: Asked, digest: str) -> Answerer:
    """The model of that folder and digest, read once in a process."""
    key = folder, tokenizer, digest
    if key not in _loaded:
        while len(_loaded) >= _MODELS:
            del _loaded[next(iter(_loaded))]
        loaded = load_answerer(folder, Asked(), tokenizer=tokenizer)
        if model_digest(folder) != digest:
            raise StoreError(f"{folder}: holds another model than when the work began; begin again")
        _loaded[key] = loaded
    return replace(_loaded[key], asked=asked)


def model_digest(folder: Path) -> str:
    """A few digits that change with any file of a model folder."""
    if not folder.is_dir():
        raise StoreError(f"{folder}: no such folder; expected a model that every worker can read")
    if (folder / SUMS).is_file():
        return hashlib.sha256(read_small(folder / SUMS)).hexdigest()[:16]
    files = sorted(file for file in folder.iterdir() if file.is_file())  # written before there were checksums
    return hashlib.sha256("".join(f"{digest(file)} {file.name}\n" for file in files).encode()).hexdigest()[:16]


def _missing(cell: Any) -> bool:
    return cell is None or type(cell).__name__ in ("NAType", "NaTType") or (isinstance(cell, float) and cell != cell)


def _array(cells: list[Any], kind: Kind) -> np.ndarray[Any, Any]:
    """Cells as NumPy holds them; strings, lists and what has gaps as objects."""
    if kind in _NUMPY and None not in cells:
        return np.array(cells, _NUMPY[kind])
    result = np.empty(len(cells), object)
    for k, cell in enumerate(cells):  # a slice would take lists of one length for a matrix
        result[k] = cell
    return result
