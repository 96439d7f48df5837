"""Prediction on Spark DataFrames.

>>> from mpad.scale.spark import score
>>> score(spark.read.parquet("in"), "/models/my-model").write.parquet("out")    # doctest: +SKIP

Every executor needs mpad and must be able to read the model folder under that name.
"""

from collections.abc import Iterator
from pathlib import Path
from types import GenericAlias
from typing import TYPE_CHECKING, Any

from mpad.errors import InputError
from mpad.extras import require
from mpad.scale.columns import Kind
from mpad.scale.predictor import Predictor

if TYPE_CHECKING:
    import pyarrow

# Spark has other names for these types
_TYPES: dict[Kind, str] = {
    "int64": "bigint",
    "bool": "boolean",
    "strings": "array<string>",
}


def score(df: Any, folder: str | Path, text: str = "text", **options: Any) -> Any:
    """Return a DataFrame with the columns of the predictions appended.

    It uses `mapInArrow`, which leaves all other columns unchanged; pandas would convert integers with gaps to floats.

    Parameters
    ----------
    df : pyspark.sql.DataFrame
        Documents.
    folder : str or Path
        Folder of a saved model, readable on every executor.
    text : str, default="text"
        Column with the texts.
    **options
        Options of `mpad.scale.Predictor`: proba, top, reject_below, threshold, tokenizer.

    Returns
    -------
    pyspark.sql.DataFrame
        The columns of `df`, then those of the predictions.

    """
    types = require("pyspark.sql.types", extra="spark")
    predictor = Predictor(folder, text, **options)
    if text not in df.columns:
        raise InputError(f"no column '{text}' in this DataFrame (there are: {', '.join(df.columns)}); set text=…")
    added = types.StructType.fromDDL(_ddl(predictor, df.columns))
    schema = types.StructType([*df.schema.fields, *added.fields])

    def predict(batches: "Iterator[pyarrow.RecordBatch]") -> "Iterator[pyarrow.RecordBatch]":
        return map(predictor, batches)

    return df.mapInArrow(predict, schema)


def predict_udf(folder: str | Path, **options: Any) -> Any:
    """Return a UDF from a column of texts to a struct of the predictions' columns.

    Parameters
    ----------
    folder : str or Path
        Folder of a saved model, readable on every executor.
    **options
        Options of `mpad.scale.Predictor`: proba, top, reject_below, threshold, tokenizer.

    Examples
    --------
    >>> df.withColumn("answer", predict_udf("/models/my-model")("text")).select("answer.label")   # doctest: +SKIP

    """
    functions = require("pyspark.sql.functions", extra="spark")
    pandas = require("pandas", extra="spark")
    predictor = Predictor(folder, **options)

    def predict(texts: Iterator[Any]) -> Iterator[Any]:
        for batch in texts:
            yield predictor(batch.to_frame(predictor.text)).drop(columns=predictor.text)

    # Spark reads the types of input and output from the annotations
    annotations: dict[str, Any] = {"texts": pandas.Series, "return": pandas.DataFrame}
    predict.__annotations__ = {name: GenericAlias(Iterator, (kind,)) for name, kind in annotations.items()}
    return functions.pandas_udf(predict, _ddl(predictor, ()))


def _ddl(predictor: Predictor, existing: Any) -> str:
    quoted = {name.replace("`", "``"): kind for name, kind in predictor.fields(existing).items()}
    return ", ".join(f"`{name}` {_TYPES.get(kind, kind)}" for name, kind in quoted.items())
