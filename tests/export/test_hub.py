"""Models in a repository: a local folder needs nothing, and the hub itself is a folder here."""

import inspect
import json
import shutil

import numpy as np
import pytest

from mpad import MPADClassifier
from mpad.errors import InputError, MissingExtra, MissingModelFile, StoreError
from mpad.export.hub import card
from mpad.storage.model_folder import open_model


@pytest.fixture(scope="module")
def trained(fruit_corpus):
    model = MPADClassifier(hidden=16, max_epochs=2, vectors=None, random_state=0, device="cpu")
    return model.fit(*fruit_corpus)


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """The hub as a folder: calls must fit the signatures of the real functions."""
    huggingface_hub = pytest.importorskip("huggingface_hub", reason="needs mpad[hub]")
    real, download = huggingface_hub.HfApi, huggingface_hub.snapshot_download
    calls = []

    class Api:
        def __init__(self, **options):
            inspect.signature(real.__init__).bind(self, **options)

        def create_repo(self, *given, **options):
            bound = inspect.signature(real.create_repo).bind(self, *given, **options).arguments
            calls.append(bound)
            return f"https://hub/{bound['repo_id']}"

        def upload_folder(self, *given, **options):
            bound = inspect.signature(real.upload_folder).bind(self, *given, **options).arguments
            shutil.copytree(bound["folder_path"], tmp_path / "hub" / bound["repo_id"])

    def snapshot(*given, **options):
        bound = inspect.signature(download).bind(*given, **options).arguments
        calls.append(bound)
        if not (tmp_path / "hub" / bound["repo_id"]).is_dir():
            raise huggingface_hub.errors.LocalEntryNotFoundError("no such\nrepository")
        return str(tmp_path / "hub" / bound["repo_id"])

    monkeypatch.setattr(huggingface_hub, "HfApi", Api)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot)
    return tmp_path / "hub", calls


def test_a_model_comes_back_from_the_hub(trained, hub, fruit_corpus):
    folder, calls = hub
    assert trained.push_to_hub("me/fruit", private=True) == "https://hub/me/fruit"
    assert calls[0]["private"] is True and calls[0]["exist_ok"] is True
    names = {"README.md", "SHA256SUMS", "config.json", "model.safetensors", "vocabulary.json"}
    assert {file.name for file in (folder / "me" / "fruit").iterdir()} == names
    loaded = MPADClassifier.from_pretrained("me/fruit", revision="main", device="cpu")
    assert calls[1]["revision"] == "main"
    assert np.array_equal(loaded.predict_proba(fruit_corpus[0]), trained.predict_proba(fruit_corpus[0]))


def test_the_card_says_how_well_it_does_beside_the_svm(trained, hub):
    yaml = pytest.importorskip("yaml")
    folder, _ = hub
    trained.push_to_hub("me/fruit")
    _, front, body = (folder / "me" / "fruit" / "README.md").read_text().split("---\n", 2)
    facts = yaml.safe_load(front)
    assert facts["pipeline_tag"] == "text-classification" and facts["library_name"] == "mpad"
    accuracy = trained.held_out_accuracy_
    (metric,) = facts["model-index"][0]["results"][0]["metrics"]
    assert metric["value"] == round(accuracy["mpad"], 4)
    assert f"| this model | {100 * round(accuracy['mpad'], 4):.1f} % |" in body
    assert f"| TF-IDF + linear SVM | {100 * round(accuracy['tfidf-svm'], 4):.1f} % |" in body
    assert "2 classes, one a document: `fruit`, `tool`." in body and 'from_pretrained("me/fruit")' in body


def test_an_edited_card_does_no_harm(trained, hub):
    folder, _ = hub
    trained.push_to_hub("me/fruit")
    (folder / "me" / "fruit" / "README.md").write_text("mine")
    (folder / "me" / "fruit" / ".gitattributes").write_text("*.safetensors filter=lfs")
    assert MPADClassifier.from_pretrained("me/fruit").classes_.tolist() == ["fruit", "tool"]


def test_labels_of_strangers_stay_text(trained, tmp_path, reseal):
    trained.save(tmp_path / "model")
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    config["labels"]["classes"] = ["`<script>\n---", "|b|"]
    (tmp_path / "model" / "config.json").write_text(json.dumps(config))
    reseal(tmp_path / "model")
    text = open_model(tmp_path / "model", lambda files: card(files, "me/x"))
    assert "`script ---`, `b`" in text and "<script>" not in text


def test_a_local_folder_needs_no_extra(trained, tmp_path, monkeypatch):
    trained.save(tmp_path / "model")
    monkeypatch.setitem(__import__("sys").modules, "huggingface_hub", None)
    assert MPADClassifier.from_pretrained(tmp_path / "model").classes_.tolist() == ["fruit", "tool"]
    with pytest.raises(MissingExtra, match="'huggingface_hub' is needed here"):
        MPADClassifier.from_pretrained("me/fruit")


@pytest.mark.parametrize("name", ["/no/such/folder", "a/b/c", "me/fr uit"])
def test_what_is_neither_a_folder_nor_a_name_is_refused(name, trained, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MissingModelFile, match="no such folder, and no name"):
        MPADClassifier.from_pretrained(name)
    with pytest.raises(InputError, match="no name of a repository"):
        trained.push_to_hub(name)


def test_a_repository_that_is_not_there_is_one_line(hub):
    with pytest.raises(StoreError, match="me/none: .*downloaded: LocalEntryNotFoundError: no such repository"):
        MPADClassifier.from_pretrained("me/none")


def test_no_network_is_one_line(trained, hub, monkeypatch):
    huggingface_hub, httpx = pytest.importorskip("huggingface_hub"), pytest.importorskip("httpx")

    def unreachable(*given, **options):
        raise httpx.ConnectError("Name or service not known")

    if httpx.HTTPError not in huggingface_hub.errors.HfHubHTTPError.__mro__:
        pytest.skip("this huggingface_hub speaks HTTP by another library")
    monkeypatch.setattr(huggingface_hub.HfApi, "create_repo", unreachable)
    with pytest.raises(StoreError, match="me/x: cannot be uploaded: ConnectError: .*; is there a network"):
        trained.push_to_hub("me/x")
