"""The Stanford sentiment treebank as trees, for models that read those: `<folder>/sst_trees/{train,dev,test}.txt`."""

from mpad.data.readers import Documents
from mpad.errors import InputError, MissingDataset
from mpad.files.archives import read_unpacked
from mpad.files.encoding import decode, split_lines
from mpad.paper.datasets.dataset import Dataset
from mpad.paper.datasets.files import data_folders

_FOLDER = "sst_trees"
_CLASSES = {"sst1": {grade: grade for grade in "01234"}, "sst2": {"0": "0", "1": "0", "3": "1", "4": "1"}}


def load_trees(name: str) -> Dataset:
    """SST-1 or SST-2, each text a tree in brackets, its label that of the root; SST-2 leaves neutral roots out."""
    if name not in _CLASSES:
        raise InputError(f"there are no parse trees for '{name}': models over trees run on {' and '.join(_CLASSES)}")
    parts = {part: _read(part, _CLASSES[name]) for part in ("train", "dev", "test")}
    return Dataset(name, parts["train"], parts["test"], parts["dev"])


def _read(part: str, classes: dict[str, str]) -> Documents:
    for folder in data_folders():
        for ending in (".txt", ".txt.xz", ".txt.gz"):
            file = folder / _FOLDER / f"{part}{ending}"
            if file.is_file():
                trees = [line for line in split_lines(decode(str(file), read_unpacked(file))) if line.strip()]
                kept = [(tree, classes[tree.strip()[1]]) for tree in trees if tree.strip()[1:2] in classes]
                return Documents([tree for tree, _ in kept], [label for _, label in kept])
    looked = " or ".join(str(folder / _FOLDER) for folder in data_folders())
    raise MissingDataset(f"no {part}.txt of the Stanford treebank's trees (PTB format) in {looked}")
