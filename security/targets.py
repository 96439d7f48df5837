"""What is fuzzed: each target takes bytes from a stranger, and may refuse them by an error of mpad's own alone."""

import asyncio
import gzip
import json
import lzma
import os
import re
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from mpad.errors import MPADError

Check = Callable[[bytes], bool]  # whether the bytes were accepted; raises nothing


class SilentChange(AssertionError):
    """Two ways to the same answer differ."""


@dataclass(frozen=True)
class Target:
    """Code that reads what strangers hand in, and inputs to start from."""

    name: str
    check: Check
    seeds: Callable[[], list[bytes]]


def _file(data: bytes, suffix: str, read: Callable[[Path], Any]) -> bool:
    handle, name = tempfile.mkstemp(suffix=suffix)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        read(Path(name))
    except MPADError:
        return False
    finally:
        os.unlink(name)
    return True


# ── Text ──

TEXTS = [
    "It's a moving film, isn't it? (Not at all!) \u7535\u5f71 \u0939\u093f\u0928\u094d\u0926\u0940",
    "don't can't we've they'll \x00\x01 \x1b[2J \u202e \U0001f600 3.14 e.g. x",
    "",
    "a" * 5000,
]


def tokenize(data: bytes) -> bool:
    """Every tokenizer, its offsets, and the compiled reading against the plain one."""
    from mpad.text.tokenizer import TOKENIZERS, KimTokenizer
    from mpad.text.vocabulary import learn_vocabulary

    text = data.decode("utf-8", "surrogatepass" if data[:1] < b"\x80" else "replace") if _decodes(data) else repr(data)
    for name in ("kim", "kim-cased", "unicode"):
        tokenizer = TOKENIZERS[name]()
        traced = tokenizer.trace(text)
        if traced.words != tokenizer.words(text) or len(traced.spans) != len(traced.words):
            raise SilentChange(f"{name}: offsets are of other words")
    for sentences in (False, True):
        own = learn_vocabulary([text, text[::-1]], KimTokenizer(), sentences)
        plain = learn_vocabulary([text, text[::-1]], _Plain(), sentences)
        if list(own[0].words) != list(plain[0].words) or not np.array_equal(own[1].ids, plain[1].ids):
            raise SilentChange("the compiled reading differs from the plain one")
    return True


def _decodes(data: bytes) -> bool:
    try:
        data.decode("utf-8", "surrogatepass" if data[:1] < b"\x80" else "replace")
    except UnicodeDecodeError:
        return False
    return True


@cache
def _plain_kind() -> type:
    from mpad.text.tokenizer import KimTokenizer

    return type("PlainKim", (KimTokenizer,), {})  # a subclass is read in Python


def _Plain() -> Any:  # noqa: N802, it stands for a class
    return _plain_kind()()


# ── Files ──

_CSV = b'text,label\n"a, good ""film""",pos\nbad,neg\n'
_JSONL = b'{"text": "good", "label": "x"}\n{"text": "bad", "label": 1}\n'


def _zip(content: bytes) -> bytes:
    file = BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("d.csv", content)
    return file.getvalue()


@cache
def _parquet() -> bytes:
    import pyarrow
    import pyarrow.parquet

    file = BytesIO()
    pyarrow.parquet.write_table(pyarrow.table({"text": ["good", None], "label": ["x", "y"]}), file)
    return file.getvalue()


FORMS: list[tuple[str, Callable[[], bytes]]] = [
    (".csv", lambda: _CSV),
    (".csv", lambda: _CSV.decode().encode("utf-16")),
    (".tsv", lambda: b"pos\tgood film\nneg\tbad\n"),
    (".jsonl", lambda: _JSONL),
    (".json", lambda: b'[{"text": "a", "label": 1}, {"text": "b", "label": 2}]'),
    (".txt", lambda: b"one\ntwo\n"),
    (".csv.gz", lambda: gzip.compress(_CSV)),
    (".csv.xz", lambda: lzma.compress(_CSV)),
    (".zip", lambda: _zip(_CSV)),
    (".parquet", _parquet),
]


def read_data(data: bytes) -> bool:
    """Data files in every format; the first byte says which."""
    from mpad.data.readers import read_documents

    suffix, _ = FORMS[data[0] % len(FORMS)] if data else FORMS[0]
    return _file(data[1:], suffix, lambda path: read_documents(path, need_labels=len(data) % 2 == 0))


_VECTORS = b"3 2\ngood 1 0\nbad -1 0\nfilm 0.5 1e-3\n"


@cache
def _npz() -> bytes:
    file = BytesIO()
    np.savez(file, words=np.array(["good", "bad"]), vectors=np.eye(2, dtype=np.float32))
    return file.getvalue()


VECTOR_FORMS: list[tuple[str, Callable[[], bytes]]] = [
    (".txt", lambda: _VECTORS),
    (".txt", lambda: _VECTORS.partition(b"\n")[2]),
    (".bin", lambda: b"2 2\ngood \0\0\x80?\0\0\0\0\nbad \0\0\0\0\0\0\x80?\n"),
    (".txt.gz", lambda: gzip.compress(_VECTORS)),
    (".npz", _npz),
]


def read_vectors(data: bytes) -> bool:
    """Word-vector files in every format."""
    from mpad.text.vector_files import read_rows

    suffix, _ = VECTOR_FORMS[data[0] % len(VECTOR_FORMS)] if data else VECTOR_FORMS[0]
    return _file(data[1:], suffix, lambda path: sum(1 for _ in read_rows(path, lambda word: True)))


def read_checkpoint(data: bytes) -> bool:
    """Checkpoints: training goes on from them, or refuses to."""
    return _file(data, ".checkpoint", lambda path: _fit(path, _fingerprint(data)))


def _fit(checkpoint: Path, fingerprint: str) -> None:
    """One epoch more than the seed has; whatever the file says, it is taken for one of these data and settings."""
    model = _unfitted(max_epochs=3)
    with patch("mpad.estimator.classifier.checkpoint_key", lambda *parts: fingerprint):
        model.fit(*_examples(), checkpoint=checkpoint, resume=True)


def _fingerprint(data: bytes) -> str:
    found = re.search(rb'fingerprint\\*": \\*"([0-9a-f]*)', data)
    return found[1].decode() if found else ""


@cache
def _checkpoint() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        _unfitted(max_epochs=2).fit(*_examples(), checkpoint=Path(folder) / "c")
        return (Path(folder) / "c").read_bytes()


# ── HTTP ──

BODIES = [
    ("/predict", {"texts": ["a good film", "bad"]}),
    ("/predict", {"texts": "a good film", "model": "m"}),
    ("/explain", {"text": "a good film", "method": "occlusion", "label": "x"}),
    ("/what-if", {"text": "a good film", "words": [0, 1], "edges": [{"source": "a", "target": "good"}]}),
]


def ask(data: bytes) -> bool:
    """Bodies of requests; the first byte says of which. An answer is one of ours, never a failure of the server's."""
    path, _ = BODIES[data[0] % len(BODIES)] if data else BODIES[0]
    app, loop = _app()
    status, answer = loop.run_until_complete(_asked(app, path, data[1:]))
    if status >= 500:
        raise AssertionError(f"{path} answered {status}: {answer[:200]!r}")
    json.loads(answer)
    return status == 200


async def _asked(app: Any, path: str, body: bytes) -> tuple[int, bytes]:
    sent: list[dict[str, Any]] = []
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> dict[str, Any]:
        return waiting.pop() if waiting else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(dict(message))

    headers = [(b"content-type", b"application/json"), (b"host", b"localhost")]
    scope: dict[str, Any] = {
        "type": "http",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "headers": headers,
    }
    scope |= {"query_string": b"", "http_version": "1.1", "scheme": "http", "root_path": "", "asgi": {"version": "3.0"}}
    await app(scope, receive, send)
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:])


@cache
def _app() -> tuple[Any, asyncio.AbstractEventLoop]:
    from mpad.server.app import make_app
    from mpad.server.models import LoadedModel

    folder = Path(tempfile.mkdtemp()) / "model"
    small_model().save(folder)
    return make_app({"m": LoadedModel("m", folder)}, log=None), asyncio.new_event_loop()


@cache
def small_model() -> Any:
    """A small trained model."""
    return _unfitted(max_epochs=3).fit(*_examples())


def _unfitted(**more: Any) -> Any:
    from mpad import MPADClassifier

    return MPADClassifier(hidden=16, vector_size=16, random_state=0, device="cpu", **more)


def _examples() -> tuple[list[str], list[str]]:
    return ["a good film", "a bad film", "good and moving", "bad and dull"] * 10, ["x", "y"] * 20


def _numbered(contents: list[bytes]) -> list[bytes]:
    return [bytes([number]) + content for number, content in enumerate(contents)]


TARGETS = {
    target.name: target
    for target in (
        Target("tokenizer", tokenize, lambda: [text.encode("utf-8", "surrogatepass") for text in TEXTS]),
        Target("data files", read_data, lambda: _numbered([make() for _, make in FORMS])),
        Target("vector files", read_vectors, lambda: _numbered([make() for _, make in VECTOR_FORMS])),
        Target("checkpoints", read_checkpoint, lambda: [_checkpoint(), b"", b"\x08\0\0\0\0\0\0\0{}      "]),
        Target("HTTP bodies", ask, lambda: _numbered([json.dumps(body).encode() for _, body in BODIES])),
    )
}
