import gzip
import lzma

import pytest

from mpad import load_dataset
from mpad.data.readers import Documents
from mpad.errors import DataFileError, MissingDataset, UnknownDataset
from mpad.paper.datasets.catalogue import BUILT_IN, CATALOGUE, NAMES, PAPER
from mpad.paper.datasets.files import check_parts, find_files, write_dataset


def test_names_and_catalogue_agree():
    assert tuple(CATALOGUE) == PAPER and NAMES == (*BUILT_IN, *PAPER)


def test_a_dataset_that_is_not_here_says_how_to_get_it(data_folder):
    with pytest.raises(MissingDataset, match=r"mpad data import imdb SOURCE, where SOURCE is aclImdb_v1"):
        load_dataset("imdb")
    with pytest.raises(UnknownDataset, match="no dataset 'imbd'"):
        load_dataset("imbd")


def test_fixed_split_folds_and_dev(data_folder):
    write_dataset(
        "trec", {"train": Documents(["how far", "who"], ["NUM", "HUM"]), "test": Documents(["why"], ["DESC"])}
    )
    trec = load_dataset("trec")
    assert trec.train.texts == ["how far", "who"] and trec.test.labels == ["DESC"] and trec.validation is None
    assert not trec.cross_validated and trec.classes == ["HUM", "NUM"]
    write_dataset("mpqa", {"all": Documents(["good\tand\nwell"], ["pos"])})
    assert load_dataset("mpqa").cross_validated and load_dataset("mpqa").train.texts == ["good and well"]
    parts = {part: Documents([part], ["1"]) for part in ("train", "dev", "test")}
    write_dataset("sst2", parts)
    assert load_dataset("sst2").validation == Documents(["dev"], ["1"])
    assert list(load_dataset("sst2").parts) == ["train", "validation", "test"]


def test_other_folder_names_and_packings(data_folder):
    (data_folder / "r8").mkdir(parents=True)
    (data_folder / "r8" / "train.tsv.gz").write_bytes(gzip.compress(b"earn\tprofit\n"))
    (data_folder / "r8" / "test.tsv").write_text("acq\tmerger\r\n")
    reuters = load_dataset("reuters")
    assert reuters.train.texts == ["profit"] and reuters.test.texts == ["merger"]


def test_the_cache_is_looked_in_too(data_folder, tmp_path):
    (tmp_path / "cache" / "mpad" / "mpqa").mkdir(parents=True)
    (tmp_path / "cache" / "mpad" / "mpqa" / "all.tsv").write_text("0\tbad\n")
    assert load_dataset("mpqa").train.labels == ["0"]
    assert find_files("polarity") is None


def test_a_missing_part_is_told(data_folder):
    write_dataset("trec", {"train": Documents(["who"], ["HUM"])})
    with pytest.raises(DataFileError, match="there is no test"):
        load_dataset("trec")


@pytest.mark.parametrize("line", ["no tab here", "\tno label", ""])
def test_a_malformed_line_is_told_by_number(data_folder, line):
    (data_folder / "mpqa").mkdir(parents=True)
    content = f"0\tbad\n{line}\n1\tgood\n".encode()
    (data_folder / "mpqa" / "all.tsv.xz").write_bytes(lzma.compress(content))
    with pytest.raises(DataFileError, match="all.tsv.xz, line 2: expected label<TAB>text"):
        load_dataset("mpqa")


def test_an_empty_file_is_told(data_folder):
    (data_folder / "mpqa").mkdir(parents=True)
    (data_folder / "mpqa" / "all.tsv").write_text("")
    with pytest.raises(DataFileError, match="holds no documents"):
        load_dataset("mpqa")


def test_what_cannot_be_the_dataset_is_not_written(tmp_path):
    good, empty = Documents(["a", "b"], ["pos", "neg"]), Documents([], [])
    check_parts("imdb", {"train": good, "test": good}, tmp_path)
    for parts in ({"train": good, "test": empty}, {"train": Documents(["a"], ["pos"]), "test": good}):
        with pytest.raises(DataFileError, match="expected 2 classes in every part of 'imdb'"):
            check_parts("imdb", parts, tmp_path)


def test_an_import_takes_the_place_of_an_older_file(data_folder):
    (data_folder / "mpqa").mkdir(parents=True)
    (data_folder / "mpqa" / "all.tsv").write_text("0\told\n")
    write_dataset("mpqa", {"all": Documents(["new"], ["1"])})
    assert load_dataset("mpqa").train.texts == ["new"]
