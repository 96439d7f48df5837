"""A model folder ↔ a repository of models, by the Hugging Face convention: four files and a README.md."""

import json
import re
from pathlib import Path
from typing import Any

from mpad.errors import InputError, MissingModelFile, StoreError
from mpad.extras import require
from mpad.storage.model_folder import FILES, ModelFiles, open_model

CARD = "README.md"  # not among the checksums: whoever owns the repository may edit it
_REPOSITORY = re.compile(r"[\w.-]+(/[\w.-]+)?")
_MOST_CLASSES = 100  # that a card lists
_MEASURED = {
    "validation_accuracy": "this model",
    "validation_accuracy_tfidf_svm": "TF-IDF + linear SVM",
    "validation_accuracy_majority": "always the most frequent class",
}


def upload(folder: Path, repo_id: str, private: bool | None, token: str | None, message: str | None) -> str:
    """Write a card into a model folder and upload it; return the address of the repository."""
    if not _REPOSITORY.fullmatch(repo_id):
        raise InputError(f"{repo_id[:100]!r} is no name of a repository; expected one such as 'name/model'")
    hub = require("huggingface_hub", extra="hub")
    (folder / CARD).write_text(open_model(folder, lambda files: card(files, repo_id)), encoding="utf-8")
    api = hub.HfApi(token=token)
    try:
        address = api.create_repo(repo_id, private=private, exist_ok=True)
        api.upload_folder(repo_id=repo_id, folder_path=folder, commit_message=message or "Upload a model of mpad")
    except _errors() as error:
        raise StoreError(f"{repo_id}: cannot be uploaded: {_one_line(error)}") from None
    return str(address)


def fetch(name: str | Path, revision: str | None, token: str | None, cache_dir: str | Path | None) -> Path:
    """Return a model folder: the local one of that name, or a snapshot of the repository of that name."""
    if Path(name).is_dir():
        return Path(name)
    if not isinstance(name, str) or not _REPOSITORY.fullmatch(name) or set(name) <= {".", "/"}:
        raise MissingModelFile(f"{name}: no such folder, and no name of a repository such as 'name/model'")
    hub = require("huggingface_hub", extra="hub")
    try:
        folder = hub.snapshot_download(
            name, revision=revision, token=token, cache_dir=cache_dir, allow_patterns=list(FILES), library_name="mpad"
        )
    except _errors() as error:
        raise StoreError(f"{name}: no such folder here, and cannot be downloaded: {_one_line(error)}") from None
    return Path(folder)


def card(files: ModelFiles, repo_id: str) -> str:
    """Return the README.md of a repository: what the model is, its held-out scores, how to use it."""
    labels, facts = files.labels(), files.card()
    measured = {name: facts[key] for key, name in _MEASURED.items() if isinstance(facts.get(key), float)}
    names = [f"`{_plain(label)}`" for label in labels.classes[:_MOST_CLASSES].tolist()]
    more = f" and {len(labels) - len(names):,} more" if len(labels) > len(names) else ""
    kind = "labels, any number a document" if labels.multilabel else "classes, one a document"
    return f"""\
---
library_name: mpad
pipeline_tag: text-classification
tags: [mpad, text-classification, graph-neural-network]
{_model_index(repo_id, measured)}---

# {repo_id}

A text classifier: documents as graphs of words, classified by passing messages over them (MPAD, AAAI 2020), \
beside a linear part where it has one. Made by mpad {_plain(files.config["mpad"])}.

```python
from mpad import MPADClassifier

model = MPADClassifier.from_pretrained("{repo_id}")
print(model.predict(["a document"]), model.predict_proba(["a document"]))
```

{len(labels)} {kind}: {", ".join(names)}{more}.

{_training(facts, measured, labels.multilabel)}\
The folder is data: loading it runs nothing that it holds, and refuses what does not hold together.
"""


def _model_index(repo_id: str, measured: dict[str, float]) -> str:
    """Return the scores as YAML that a repository is searched by: JSON, which YAML reads."""
    own = measured.get("this model")
    if own is None:
        return ""
    metric = {"type": "accuracy", "value": own, "name": "accuracy on held-out training documents"}
    dataset = {"type": "held-out", "name": "held-out part of the training documents"}
    result = {"task": {"type": "text-classification"}, "dataset": dataset, "metrics": [metric]}
    return f"model-index: {json.dumps([{'name': repo_id, 'results': [result]}])}\n"


def _training(facts: dict[str, Any], measured: dict[str, float], multilabel: bool) -> str:
    documents, held = facts.get("documents"), facts.get("held_out")
    text = ""
    if type(documents) is int:
        at = f" ({_plain(facts['trained'])})" if isinstance(facts.get("trained"), str) else ""
        text += f"Trained on {documents:,} documents{at}.\n\n"
    if measured:
        what = "share of right labels" if multilabel else "accuracy"
        where = f"{held:,} held-out documents" if type(held) is int else "held-out documents"
        rows = "".join(f"| {name} | {100 * value:.1f} % |\n" for name, value in measured.items())
        text += f"| on {where} of the training data | {what} |\n|---|---|\n{rows}\n"
    return text


def _plain(value: object) -> str:
    """Return a stranger's text on one line, without characters that Markdown reads."""
    return re.sub(r"[`|<>\s]+", " ", str(value)).strip()[:80]


def _errors() -> tuple[type[Exception], ...]:
    """Return the errors that a request may raise: the hub's, and those of its HTTP library."""
    return *require("huggingface_hub.errors", extra="hub").HfHubHTTPError.__bases__, OSError, ValueError


def _one_line(error: Exception) -> str:
    line = " ".join(f"{type(error).__name__}: {error}".split())[:300]
    unreachable = type(error).__name__ in {"ConnectError", "ConnectTimeout", "ConnectionError"}
    return f"{line}; is there a network?" if unreachable else line
