"""A model folder → one whose large tables are of 8 bits; it is loaded like any other."""

from dataclasses import asdict
from pathlib import Path

from mpad.errors import InputError
from mpad.storage.int8 import quantize_tables, wide_tables
from mpad.storage.model_folder import (
    TABLES,
    VOCABULARY,
    ModelFiles,
    new_folder,
    open_model,
    read_network,
    write_json,
    write_tensors,
)
from mpad.storage.model_formats import FORMAT


def export_int8(folder: str | Path, out: str | Path) -> list[str]:
    """Write the model of a folder to another, its word vectors and other wide tables in 8 bits; their names."""

    def read(files: ModelFiles) -> list[str]:
        model = read_network(files)
        network = model.mpad_config()
        if model.transformer is not None:
            raise InputError(
                f"{folder}: its features come from a transformer: there are no word vectors to make smaller"
            )
        tensors = model.tensors(network.tensor_shapes())
        model.potentials(dict(tensors))  # refuses those that do not hold together
        tables = wide_tables(tensors, TABLES)
        config = {**files.config, "format": FORMAT, "network": asdict(network), "int8": tables}
        with new_folder(out, config) as fresh:
            write_json(fresh / VOCABULARY, list(model.vocabulary.words))
            write_tensors(fresh, quantize_tables(tensors, tables))
        return tables

    return open_model(folder, read)
