"""Corpora that need not fit into memory, by one process."""

import json

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from tests.training.conftest import QUICK

from mpad import MPADClassifier
from mpad.data.streams import Columns, list_pieces
from mpad.errors import CheckpointError, DataFileError, InputError
from mpad.graph import graphs_of_words
from mpad.training.stream import ShardedCorpus, StreamOptions, read_list, read_shard, write_shard


def fit(data, tmp_path, options=None, **settings):
    reading = StreamOptions(**{"cache": tmp_path / "cache", "workers": 1, **(options or {})})
    model = MPADClassifier(**{**QUICK, **settings})
    return model.fit_stream(data, options=reading)


@pytest.mark.parametrize("preset", ["best", "paper", "authors"])
def test_it_learns_what_a_fit_in_memory_learns(files, tmp_path, fruit_corpus, preset):
    model = fit(files, tmp_path, preset=preset, max_epochs=12)
    assert model.score(*fruit_corpus) > 0.95
    assert model.card_["documents"] == 120 and 0 < model.card_["held_out"] < 30
    model.save(tmp_path / "m")
    loaded = MPADClassifier.load(tmp_path / "m", device="cpu")
    np.testing.assert_allclose(loaded.predict_proba(fruit_corpus[0]), model.predict_proba(fruit_corpus[0]), atol=1e-6)


def test_sentences_above_words(files, tmp_path, fruit_corpus):
    assert fit(files, tmp_path, variant="clique", max_epochs=12).score(*fruit_corpus) > 0.9


def test_all_kinds_of_files_say_the_same(files, tmp_path, fruit_corpus):
    texts, labels = fruit_corpus
    table = pyarrow.table({"text": texts, "label": labels})
    pyarrow.parquet.write_table(table, tmp_path / "all.parquet", row_group_size=20)
    (tmp_path / "all.jsonl").write_text(
        "".join(json.dumps({"text": t, "label": y}) + "\n" for t, y in zip(*fruit_corpus, strict=True))
    )
    models = [fit(tmp_path / name, tmp_path, max_epochs=2) for name in ("all.parquet", "all.jsonl")]
    assert models[0].card_["documents"] == models[1].card_["documents"] == 120
    np.testing.assert_allclose(models[0].predict_proba(texts[:5]), models[1].predict_proba(texts[:5]), atol=1e-6)


def test_hugging_face_datasets_are_read_with_the_names_of_their_classes(tmp_path, fruit_corpus):
    datasets = pytest.importorskip("datasets", reason="Hugging Face datasets is not installed")
    texts, labels = fruit_corpus
    named = datasets.ClassLabel(names=["fruit", "tool"])
    features = datasets.Features({"text": datasets.Value("string"), "label": named})
    numbers = [named.str2int(label) for label in labels]
    data = datasets.Dataset.from_dict({"text": texts, "label": numbers}, features=features)
    assert fit(data, tmp_path, max_epochs=2).classes_.tolist() == ["fruit", "tool"]


@pytest.mark.filterwarnings("ignore")  # of the library
def test_hugging_face_datasets_in_any_format_and_as_streams(tmp_path, fruit_corpus):
    datasets = pytest.importorskip("datasets", reason="Hugging Face datasets is not installed")
    from mpad.data.streams import Columns, list_pieces

    texts, labels = fruit_corpus
    tags = [["fruit", "odd"] if k % 3 else ["tool"] for k in range(len(texts))]
    rows = [{"text": text, "tags": own} for text, own in zip(texts, tags, strict=True)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    files = {"data_files": str(tmp_path / "rows.jsonl"), "cache_dir": str(tmp_path / "hf"), "split": "train"}
    whole = datasets.load_dataset("json", **files)
    streamed = datasets.load_dataset("json", **files, streaming=True)
    names = ["fruit", "odd", "tool"]
    numbers = [[names.index(one) for one in own] for own in tags]
    named = datasets.Features(text=datasets.Value("string"), tags=datasets.Sequence(datasets.ClassLabel(names=names)))
    of_classes = datasets.Dataset.from_dict({"text": texts, "tags": numbers}, features=named)
    made = datasets.IterableDataset.from_generator(lambda: iter(rows))
    for data in (whole, whole.with_format("numpy"), streamed, streamed.shuffle(seed=0), of_classes, made):
        chunks = [chunk for piece in list_pieces(data, Columns()) for chunk in piece.chunks()]
        read = [(t, tuple(own)) for chunk in chunks for t, own in zip(chunk.texts, chunk.labels, strict=True)]
        assert sorted(read) == sorted(zip(texts, map(tuple, tags), strict=True))
    model = fit(streamed, tmp_path, max_epochs=2)
    assert model.classes_.tolist() == names and model.predict(texts[:2]).shape == (2, 3)
    assert list_pieces(streamed, Columns())[0].digest() != list_pieces(streamed, Columns())[0].digest()
    assert list_pieces(whole, Columns())[0].digest() == list_pieces(whole, Columns())[0].digest()


@pytest.mark.filterwarnings("ignore")  # of the library
def test_what_is_no_dataset_or_has_no_label_is_named():
    datasets = pytest.importorskip("datasets", reason="Hugging Face datasets is not installed")
    from mpad.data.streams import Columns, list_pieces
    from mpad.errors import DataFileError

    named = datasets.Features(text=datasets.Value("string"), label=datasets.ClassLabel(names=["a", "b"]))
    data = datasets.Dataset.from_dict({"text": ["x", "y"], "label": [0, -1]}, features=named)
    with pytest.raises(DataFileError, match="row 2: the label is missing"):
        list(list_pieces(data, Columns())[0].chunks())
    with pytest.raises(DataFileError, match="found DatasetDict; name one of train, test"):
        list_pieces(datasets.DatasetDict(train=data, test=data), Columns())


def test_many_labels(tmp_path, fruit_corpus):
    texts, labels = fruit_corpus
    rows = [
        {"text": t, "tags": [y, "odd"] if k % 3 else [y]} for k, (t, y) in enumerate(zip(texts, labels, strict=True))
    ]
    (tmp_path / "many.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    model = fit(tmp_path / "many.jsonl", tmp_path, max_epochs=3)
    assert model.classes_.tolist() == ["fruit", "odd", "tool"] and model.predict(texts[:2]).shape == (2, 3)


def test_the_same_again_comes_from_the_cache(files, tmp_path, fruit_corpus):
    first = fit(files, tmp_path)
    shards = {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").glob("*.safetensors")}
    again = fit(files, tmp_path)
    assert shards == {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").glob("*.safetensors")}
    np.testing.assert_array_equal(first.predict_proba(fruit_corpus[0]), again.predict_proba(fruit_corpus[0]))
    fit(files, tmp_path, window=3)
    assert len(list((tmp_path / "cache").glob("*.safetensors"))) == 2 * len(shards), "other settings, other shards"


def test_worker_processes_make_the_same_shards(files, tmp_path, fruit_corpus):
    one = fit(files, tmp_path, {"cache": tmp_path / "one"}, max_epochs=1)
    two = fit(files, tmp_path, {"cache": tmp_path / "two", "workers": 2}, max_epochs=1)
    np.testing.assert_array_equal(one.predict_proba(fruit_corpus[0]), two.predict_proba(fruit_corpus[0]))


def test_a_half_written_shard_is_never_used(files, tmp_path):
    fit(files, tmp_path, max_epochs=1)
    listed = next((tmp_path / "cache").glob("*[!s].json"))
    shard = read_list(listed)[0]
    shard.path.unlink()
    assert read_list(listed) is None, "a list that names a shard that is not there counts for nothing"
    fit(files, tmp_path, max_epochs=1)
    shard.path.write_bytes(shard.path.read_bytes()[:100])
    with pytest.raises(DataFileError, match="a shard that cannot be read"):
        read_shard(shard)


def test_bad_files_are_named(files, tmp_path):
    (tmp_path / "part9.csv").write_text('text,label\n"never closed,fruit\n')
    with pytest.raises(DataFileError, match=r"part9.csv, line"):
        fit(files, tmp_path)
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(DataFileError, match=r"bad.parquet: not a Parquet file"):
        fit(tmp_path / "bad.parquet", tmp_path)
    (tmp_path / "a.csv").write_text("body_text,label\nx,y\n")
    with pytest.raises(DataFileError, match=r"no column of text among body_text, label"):
        fit(tmp_path / "a.csv", tmp_path)
    with pytest.raises(DataFileError, match="only .parquet"):
        (tmp_path / "a.txt").write_text("x")
        fit(tmp_path / "a.txt", tmp_path)
    with pytest.raises(DataFileError, match="a text: no such file or folder"):
        fit(["a text"], tmp_path)
    with pytest.raises(InputError, match="at least two classes"):
        (tmp_path / "b.csv").write_text("text,label\nx,y\nz,y\n")
        fit(tmp_path / "b.csv", tmp_path)


def test_training_that_was_cut_off_goes_on(files, tmp_path, fruit_corpus):
    class Cut(Exception):
        pass

    def stop(report):
        if report.epoch == 3:
            raise Cut

    options = StreamOptions(cache=tmp_path / "cache", workers=1)
    whole = MPADClassifier(**{**QUICK, "max_epochs": 5}).fit_stream(files, options=options)
    with pytest.raises(Cut):
        MPADClassifier(**{**QUICK, "max_epochs": 5}).fit_stream(
            files, options=options, sink=stop, checkpoint=tmp_path / "c"
        )
    with pytest.raises(CheckpointError, match="a training was interrupted"):
        MPADClassifier(**QUICK).fit_stream(files, options=options, checkpoint=tmp_path / "c")
    epochs = []
    again = MPADClassifier(**{**QUICK, "max_epochs": 5}).fit_stream(
        files, options=options, sink=lambda report: epochs.append(report.epoch), checkpoint=tmp_path / "c", resume=True
    )
    assert epochs == [3, 4, 5], "the third ended, but was not kept yet"
    np.testing.assert_array_equal(whole.predict_proba(fruit_corpus[0]), again.predict_proba(fruit_corpus[0]))


def sharded(tmp_path, files, **options):
    fit(files, tmp_path, max_epochs=1)
    lists = sorted((tmp_path / "cache").glob("*.json"))
    shards = [shard for one in lists for shard in read_list(one)]
    return ShardedCorpus(shards, **{"held_out": 0.2, "seed": 0, "window": 30, **options})


def test_an_epoch_passes_once_over_all_documents_but_those_held_out(files, tmp_path):
    corpus = sharded(tmp_path, files)
    held = sum(int(corpus.held(number).sum()) for number in range(len(corpus.shards)))
    orders = []
    for epoch in (1, 2):
        windows = list(corpus.windows(epoch, 16, [0]))
        assert sum(len(batch) for window in windows for batch in window.batches) == 120 - held
        for window in windows:
            rows = np.concatenate(window.batches)
            assert len(np.unique(rows)) == len(rows) and max(len(batch) for batch in window.batches) <= 16
        orders.append([window.targets[np.concatenate(window.batches)].tolist() for window in windows])
    assert orders[0] != orders[1], "shuffled anew"
    assert len(corpus.held_out_documents()[0]) == held
    assert sum(w.documents for w in corpus.windows(1, 16, [0], most=40)) < 120 - held


def test_two_lanes_of_one_process_are_those_of_two(files, tmp_path):
    corpus = sharded(tmp_path, files, lanes=2)
    both = list(corpus.windows(1, 16, [0, 1]))
    first, second = list(corpus.windows(1, 16, [0])), list(corpus.windows(1, 16, [1]))
    assert len(both) == len(first) == len(second)
    for window, a, b in zip(both, first, second, strict=True):
        assert len(window.batches) == len(a.batches) == len(b.batches)
        for k, batch in enumerate(window.batches):
            joined = [*a.targets[a.batches[k]], *b.targets[b.batches[k]]]
            assert window.targets[batch].tolist() == joined
            assert a.before[k] == 0 and b.before[k] == len(a.batches[k])


def test_pieces_have_digests_of_their_content(tmp_path):
    (tmp_path / "a.csv").write_text("text,label\nx,y\n")
    (tmp_path / "b.csv").write_text("text,label\nx,y\n")
    (tmp_path / "c.csv").write_text("text,label\nx,z\n")
    a, b, c = [piece.digest() for piece in list_pieces(str(tmp_path / "*.csv"), Columns())]
    assert a == b != c


def test_every_pass_says_how_far_it_is(files, tmp_path, capsys):
    fit(files, tmp_path, verbose=True)
    said = capsys.readouterr().err
    assert [word in said for word in ("pieces counted", "pieces packed", "windows fitted", "epoch")] == [True] * 4
    fit(files, tmp_path, verbose=False)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("words", [3, 300, 70_000])
def test_shards_give_back_what_was_packed_in_fewer_bytes(tmp_path, words):
    texts = [" ".join(f"w{k}" for k in range(words)) + " w0 w1", "one two one two"]
    graphs, _ = graphs_of_words(texts, weighting="distance" if words == 3 else "count")
    shard = write_shard(tmp_path / "s.safetensors", graphs, np.array([0, 1]), np.zeros(2, np.uint64))
    again, targets = read_shard(shard)
    assert targets.tolist() == [0, 1]
    for field in ("words", "node_start", "source", "target", "weight", "edge_start", "document_start", "count"):
        packed = getattr(graphs, field)
        assert np.array_equal(getattr(again, field), packed) and getattr(again, field).dtype == packed.dtype
    if words == 300:
        assert shard.path.stat().st_size < 0.6 * sum(
            getattr(graphs, field).nbytes for field in ("words", "source", "target", "weight", "count")
        )


def test_an_interrupt_keeps_what_there_is(files, tmp_path):
    def interrupt(report):
        if report.epoch == 2:
            raise KeyboardInterrupt

    reading = StreamOptions(cache=tmp_path / "cache", workers=1)
    model = MPADClassifier(**{**QUICK, "max_epochs": 9})
    model.fit_stream(files, options=reading, sink=interrupt, keep_interrupted=True)
    assert model.interrupted_ and model.n_iter_ == 2
    with pytest.raises(KeyboardInterrupt):
        MPADClassifier(**QUICK).fit_stream(files, options=reading, sink=interrupt)


def test_texts_without_a_word_are_refused_in_one_line(tmp_path):
    (tmp_path / "blank.csv").write_text("text,label\n" + ",x\n,y\n" * 3)
    with pytest.raises(InputError, match="not one word is left of any of the 6 documents"):
        fit(tmp_path / "blank.csv", tmp_path)


def test_files_without_documents_are_named(tmp_path):
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("text,label\n")
    with pytest.raises(InputError, match=r"a\.csv, .*b\.csv: holds no documents"):
        fit(str(tmp_path / "*.csv"), tmp_path)
