"""`mpad embed`: vectors of texts, or the texts closest to a query."""

from io import BytesIO
from pathlib import Path
from typing import Annotated

import numpy as np
from typer import Option

from mpad.cli.inputs import Data, Force, Reader, TextColumn, drop_none
from mpad.cli.output import Format, FormatOption, check_new, print_rows, write_output
from mpad.errors import InputError

_KINDS = (".parquet", ".npy")


def run(
    data: Data,
    out: Annotated[
        Path | None, Option("--out", "-o", help="Write to this file: .parquet (with the texts) or .npy.")
    ] = None,
    query: Annotated[str | None, Option(help="Print the documents that are closest to this text.")] = None,
    top: Annotated[int, Option(help="With --query: number of documents.", min=1)] = 5,
    encoder: Annotated[
        str | None, Option(help="Folder of an encoder, from mpad pretrain; by default the one that ships with mpad.")
    ] = None,
    text: TextColumn = None,
    form: FormatOption = Format.table,
    force: Force = False,
) -> None:
    """Turn documents into vectors, whose cosine says how close they are in meaning.

    Example: `mpad embed reviews.csv --out vectors.parquet`

    Example: `mpad embed reviews.csv --query "the battery died" --top 3`
    """
    if (out is None) == (query is None):
        raise InputError("expected --out FILE to write vectors or --query TEXT to search, and not both")
    check_new(out, force, _KINDS)
    texts = Reader.of(text).texts(data)
    if not texts:
        raise InputError(f"{data}: holds no documents")
    from mpad.estimator.encoder import MPADEncoder

    model = MPADEncoder(**drop_none(encoder=encoder))
    if query is not None:
        found = model.nearest(query, texts, top)
        print_rows(["cosine", "text"], [[round(cosine, 4), texts[place]] for place, cosine in found], form)
        return
    assert out is not None
    vectors, sink = model.transform(texts), BytesIO()
    if out.suffix.lower() == ".npy":
        np.save(sink, vectors)
    else:
        import pyarrow
        import pyarrow.parquet

        column = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(vectors.ravel()), vectors.shape[1])
        pyarrow.parquet.write_table(pyarrow.table({"text": texts, "vector": column}), sink)
    write_output(out, sink.getvalue(), f"{len(texts):,} vectors of {vectors.shape[1]:,} numbers")
