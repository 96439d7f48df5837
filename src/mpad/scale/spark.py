"""DataFrames of Spark, scored where they are.

>>> from mpad.scale.spark import score
>>> score(spark.read.parquet("in"), "/models/my-model").write.parquet("out")    # doctest: +SKIP

The folder of the model must be readable by that name on every executor, and mpad installed there.
"""

from collections.abc import Iterator
from pathlib import Path
from types import GenericAlias
from typing import TYPE_CHECKING, Any

from mpad.errors import InputError
from mpad.extras import require
from mpad.scale.answers import Kind
from mpad.scale.predictor import Predictor

if TYPE_CHECKING:
    import pyarrow

_TYPES: dict[Kind, str] = {
    "string": "string",
    "int64": "bigint",
    "double": "double",
    "bool": "boolean",
    "strings": "array<string>",
}


def score(df: Any, folder: str | Path, text: str = "text", **asked: Any) -> Any:
    """The DataFrame with the answer's columns behind its own; the options are those of `Predictor`.

    By `mapInArrow`, which leaves all other columns exactly as they are (pandas would make numbers with gaps floats).
    """
    types = require("pyspark.sql.types", extra="spark")
    predictor = Predictor(folder, text, **asked)
    if text not in df.columns:
        raise InputError(f"no column '{text}' in this DataFrame (there are: {', '.join(df.columns)}); set text=…")
    added = types.StructType.fromDDL(_ddl(predictor, df.columns))
    schema = types.StructType([*df.schema.fields, *added.fields])

    def answered(batches: "Iterator[pyarrow.RecordBatch]") -> "Iterator[pyarrow.RecordBatch]":
        return map(predictor, batches)

    return df.mapInArrow(answered, schema)


def predict_udf(folder: str | Path, **asked: Any) -> Any:
    """A UDF from a column of texts to a struct of the answer's columns; the options are those of `Predictor`.

    >>> df.withColumn("answer", predict_udf("/models/my-model")("text")).select("answer.label")   # doctest: +SKIP
    """
    functions = require("pyspark.sql.functions", extra="spark")
    pandas = require("pandas", extra="spark")
    predictor = Predictor(folder, **asked)

    def answered(texts: Iterator[Any]) -> Iterator[Any]:
        for batch in texts:
            yield predictor(batch.to_frame(predictor.text)).drop(columns=predictor.text)

    # Spark reads from the annotations what goes in and what comes out
    annotations: dict[str, Any] = {"texts": pandas.Series, "return": pandas.DataFrame}
    answered.__annotations__ = {name: GenericAlias(Iterator, (kind,)) for name, kind in annotations.items()}
    return functions.pandas_udf(answered, _ddl(predictor, ()))


def _ddl(predictor: Predictor, there: Any) -> str:
    quoted = {name.replace("`", "``"): kind for name, kind in predictor.fields(there).items()}
    return ", ".join(f"`{name}` {_TYPES[kind]}" for name, kind in quoted.items())
