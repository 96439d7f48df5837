"""A small model, a model over many labels, and what they should answer."""

import pytest

from mpad import MPADClassifier


@pytest.fixture(scope="session")
def model(tmp_path_factory, fitted_flat):
    folder = tmp_path_factory.mktemp("models") / "fruit"
    fitted_flat.save(folder)
    return folder


@pytest.fixture(scope="session")
def many(tmp_path_factory, fruit_corpus):
    texts, labels = fruit_corpus
    tags = [["food", "tree"] if label == "fruit" else ["metal"] for label in labels]
    folder = tmp_path_factory.mktemp("models") / "many"
    options = {"hidden": 16, "vector_size": 16, "max_epochs": 10, "learning_rate": 0.01, "device": "cpu"}
    MPADClassifier(random_state=0, vectors=None, **options).fit(texts, tags).save(folder)
    return folder
