"""A model folder ↔ a repository of models, by the Hugging Face convention: four files and a README.md."""

import json
import re
from collections.abc import Iterator
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
    """Write a card into a model folder and upload it; the address of the repository."""
    if not _REPOSITORY.fullmatch(repo_id):
        raise InputError(f"{repo_id[:100]!r} is no name of a repository; expected one such as 'name/model'")
    hub = require("huggingface_hub", extra="hub")
    (folder / CARD).write_text(open_model(folder, lambda files: card(files, repo_id)), encoding="utf-8")
    api, said = hub.HfApi(token=token), message or "Upload a model of mpad"
    try:
        address = api.create_repo(repo_id, private=private, exist_ok=True)
        api.upload_folder(repo_id=repo_id, folder_path=folder, commit_message=said)
    except _errors() as error:
        raise StoreError(f"{repo_id}: cannot be uploaded: {_one_line(error)}") from None
    return str(address)


def fetch(name: str | Path, revision: str | None, token: str | None, cache_dir: str | Path | None) -> Path:
    """A model folder: the local one of that name, or a snapshot of the repository of that name."""
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
    """README.md of a repository: what the model is, how well it did on held-out documents, how to use it."""
    labels, facts = files.labels(), files.card()
    measured = {said: facts[name] for name, said in _MEASURED.items() if isinstance(facts.get(name), float)}
    names = [_code(label) for label in labels.classes[:_MOST_CLASSES].tolist()]
    more = len(labels) - len(names)
    kind = "labels, any number a document" if labels.multilabel else "classes, one a document"
    lines = [
        *_front_matter(repo_id, measured),
        f"# {repo_id}",
        "",
        "A text classifier: documents as graphs of words, classified by passing messages over them "
        f"(MPAD, AAAI 2020), beside a linear part where it has one. Made by mpad {_plain(files.config['mpad'])}.",
        "",
        "```python",
        "from mpad import MPADClassifier",
        "",
        f'model = MPADClassifier.from_pretrained("{repo_id}")',
        'print(model.predict(["a document"]), model.predict_proba(["a document"]))',
        "```",
        "",
        f"{len(labels)} {kind}: {', '.join(names)}{f' and {more:,} more' if more else ''}.",
        "",
        *_training(facts, measured, labels.multilabel),
    ]
    return "\n".join(lines) + "\n"


def _front_matter(repo_id: str, measured: dict[str, float]) -> Iterator[str]:
    """YAML that a repository is searched by; strings as JSON writes them, which YAML reads."""
    yield from ["---", "library_name: mpad", "pipeline_tag: text-classification"]
    yield "tags: [mpad, text-classification, graph-neural-network]"
    own = measured.get("this model")
    if own is not None:
        metric = {"type": "accuracy", "value": own, "name": "accuracy on held-out training documents"}
        dataset = {"type": "held-out", "name": "held-out part of the training documents"}
        result = {"task": {"type": "text-classification"}, "dataset": dataset, "metrics": [metric]}
        yield f"model-index: {json.dumps([{'name': repo_id, 'results': [result]}])}"
    yield from ["---", ""]


def _training(facts: dict[str, Any], measured: dict[str, float], multilabel: bool) -> Iterator[str]:
    documents, held = facts.get("documents"), facts.get("held_out")
    if type(documents) is int:
        at = f" ({_plain(facts['trained'])})" if isinstance(facts.get("trained"), str) else ""
        yield from [f"Trained on {documents:,} documents{at}.", ""]
    if measured:
        what = "share of right labels" if multilabel else "accuracy"
        where = f"{held:,} held-out documents" if type(held) is int else "held-out documents"
        yield from [f"| on {where} of the training data | {what} |", "|---|---|"]
        yield from (f"| {said} | {100 * value:.1f} % |" for said, value in measured.items())
        yield ""
    yield "The folder is data: loading it runs nothing that it holds, and refuses what does not hold together."


def _code(label: object) -> str:
    return f"`{_plain(label)}`"


def _plain(value: object) -> str:
    """Text of strangers on one line that no Markdown leads out of."""
    return re.sub(r"[`|<>\s]+", " ", str(value)).strip()[:80]


def _errors() -> tuple[type[Exception], ...]:
    """Return the errors that a request may raise: the hub's, and those of its HTTP library."""
    return *require("huggingface_hub.errors", extra="hub").HfHubHTTPError.__bases__, OSError, ValueError


def _one_line(error: Exception) -> str:
    said = " ".join(f"{type(error).__name__}: {error}".split())[:300]
    unanswered = type(error).__name__ in {"ConnectError", "ConnectTimeout", "ConnectionError"}
    return f"{said}; is there a network?" if unanswered else said
