import numpy as np

from mpad.paper.experiments.provenance import commit, describe_vectors, device_name, versions


def test_vectors_that_mark_their_genuine_rows_say_so(tmp_path):
    marked = np.array([True, False, False])
    np.savez(tmp_path / "some.npz", words=np.array(list("abc")), vectors=np.ones((3, 2)), genuine=marked)
    np.savez(tmp_path / "plain.npz", words=np.array(list("abc")), vectors=np.ones((3, 2)))
    assert describe_vectors(tmp_path / "some.npz") == "some: 1 of 3 rows genuine, the rest estimates"
    assert describe_vectors(tmp_path / "plain.npz") == "plain"
    assert describe_vectors("somewhere/GoogleNews-vectors.bin.gz") == "GoogleNews-vectors.bin"


def test_origins(monkeypatch):
    assert {"mpad", "python", "torch", "numpy"} <= set(versions()) and "cpu" in device_name("cpu")
    assert commit()
    monkeypatch.setenv("MPAD_COMMIT", "abc123")
    assert commit() == "abc123"
