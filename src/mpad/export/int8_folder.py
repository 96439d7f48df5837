"""A model folder → one whose large tables are of 8 bits; it is loaded like any other.

A row is stored as numbers from −127 to 127 and a scale, in a quarter or half of the space: x ≈ scale · n.
"""

from dataclasses import asdict
from pathlib import Path

from mpad.errors import InputError
from mpad.storage.model_folder import (
    SCALES,
    TABLES,
    VOCABULARY,
    ModelFiles,
    new_folder,
    open_model,
    quantize,
    read_network,
    write_json,
    write_tensors,
)
from mpad.storage.model_formats import FORMAT

_NARROWEST = 8  # columns; in narrower tables scales take more space than is saved


def export_int8(folder: str | Path, out: str | Path) -> list[str]:
    """Write a model with its wide tables in 8 bits, a scale per row.

    Parameters
    ----------
    folder : str or Path
        Folder of a fitted model.
    out : str or Path
        Folder to write.

    Returns
    -------
    list of str
        Names of the tables in 8 bits.

    """

    def read(files: ModelFiles) -> list[str]:
        model = read_network(files)
        network = model.mpad_config()
        if model.transformer is not None:
            raise InputError(
                f"{folder}: its features come from a transformer: there are no word vectors to make smaller"
            )
        tensors = model.tensors(network.tensor_shapes())
        model.potentials(dict(tensors))  # raises if they are not of one model
        tables = [name for name in TABLES if name in tensors and tensors[name].shape[1] >= _NARROWEST]
        for name in tables:
            tensors[name], tensors[name + SCALES] = quantize(tensors[name])
        config = {**files.config, "format": FORMAT, "network": asdict(network), "int8": tables}
        with new_folder(out, config) as fresh:
            write_json(fresh / VOCABULARY, list(model.vocabulary.words))
            write_tensors(fresh, tensors)
        return tables

    return open_model(folder, read)
