"""The statistics of Table 1, counted and kept: `<folder>/statistics.json`."""

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mpad.errors import DataFileError
from mpad.paper.datasets import load_dataset
from mpad.paper.datasets.statistics import Statistics, describe
from mpad.paper.experiments import provenance

TOKENIZERS = ("kim", "kim-cased")


def count(dataset: str, vectors: str | None, folder: Path) -> None:
    """Count a dataset, lower-cased and with case kept, and keep what was found."""
    loaded = load_dataset(dataset)
    kept = _read(folder)
    kept[dataset] = {
        "commit": provenance.commit(),
        "vectors": None if vectors is None else provenance.describe_vectors(vectors),
        **{name: asdict(describe(loaded, name, vectors)) for name in TOKENIZERS},
    }
    folder.mkdir(parents=True, exist_ok=True)
    beside = folder / f".statistics.json.{os.getpid()}"
    beside.write_text(json.dumps(dict(sorted(kept.items())), indent=1) + "\n", encoding="utf-8")
    beside.replace(folder / "statistics.json")


def counted(folder: Path) -> dict[str, dict[str, Statistics]]:
    """Return the statistics of each dataset by tokenizer."""
    return {
        name: {tokenizer: Statistics(**result[tokenizer]) for tokenizer in TOKENIZERS}
        for name, result in _read(folder).items()
    }


def vectors_counted(folder: Path) -> set[str]:
    """The vector files that words were looked up in."""
    return {result["vectors"] for result in _read(folder).values() if result["vectors"]}


def _read(folder: Path) -> dict[str, dict[str, Any]]:
    file = folder / "statistics.json"
    try:
        result: dict[str, dict[str, Any]] = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    except ValueError as error:
        raise DataFileError(f"{file}: not the counts that mpad reproduce table1 writes: {error}") from None
    return result
