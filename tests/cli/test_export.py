import csv
import io

import pytest
from tests.cli.test_cli import mpad

from mpad import inference


@pytest.fixture(scope="module")
def model(fitted_flat, tmp_path_factory):
    folder = tmp_path_factory.mktemp("export") / "model"
    fitted_flat.save(folder)
    return folder


@pytest.fixture(scope="module")
def data(model, fruit_corpus):
    path = model.parent / "test.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("text", "label"), *zip(*fruit_corpus, strict=True)])
    return path


def test_both_forms_are_compared_with_the_model(model, data, tmp_path):
    pytest.importorskip("onnxruntime", reason="needs mpad[onnx]")
    pytest.importorskip("onnxscript", reason="needs mpad[onnx]")
    out = ["--onnx", tmp_path / "onnx", "--int8", tmp_path / "small"]
    done = mpad("export", model, *out, "--check", data, "-f", "csv")
    before, onnx, int8 = csv.DictReader(io.StringIO(done.stdout))
    assert [row["form"] for row in (before, onnx, int8)] == ["before", "onnx", "int8"]
    assert float(before["accuracy"]) == float(onnx["accuracy"]) > 0.9
    assert float(onnx["largest difference"]) < 1e-5 and int(onnx["answers changed"]) == 0
    assert 0 < float(int8["largest difference"]) < 0.1 and float(int8["megabytes"]) < float(before["megabytes"])
    assert inference.load(tmp_path / "small").predict(["the apple", "a saw"]).tolist() == ["fruit", "tool"]
    assert "8 bits: vectors" in done.stderr


def test_a_form_must_be_named_and_the_model_is_kept(model):
    assert "--onnx OUT or --int8 OUT" in mpad("export", model, check=False).stderr
    done = mpad("export", model, "--int8", model, check=False)
    assert done.returncode == 1 and "is the model itself" in done.stderr
    inference.load(model)
