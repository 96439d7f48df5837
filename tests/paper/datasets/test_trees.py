import lzma

import pytest

from mpad.errors import InputError, MissingDataset
from mpad.paper.datasets.files import load_trees


def test_trees_with_their_roots_as_labels(data_folder):
    with pytest.raises(MissingDataset, match="no train.txt of the Stanford treebank's trees"):
        load_trees("sst1")
    (data_folder / "sst_trees").mkdir(parents=True)
    for part in ("train", "dev", "test"):
        content = "(3 (2 It) (4 works))\n(2 (2 A) (2 film))\n\n(0 bad)\n"
        (data_folder / "sst_trees" / f"{part}.txt.xz").write_bytes(lzma.compress(content.encode()))
    assert load_trees("sst1").train.labels == ["3", "2", "0"] and load_trees("sst2").test.labels == ["1", "0"]
    assert load_trees("sst2").validation.texts[0] == "(3 (2 It) (4 works))"
    with pytest.raises(InputError, match="no parse trees for 'imdb'"):
        load_trees("imdb")
