"""Contextual word features: the states of words in a sentence transformer.

The transformer tokenizes the text itself. A word's state is the mean of the last hidden states of the tokens that
overlap its span; zeros if there are none. A text longer than the transformer's window is read in windows that overlap
by a quarter; a token in two windows takes the state with more context on its shorter side. States are rounded to
float16, and those of many texts are cached on disk (mpad.files.cache) by a digest of transformer, text and words.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpad.errors import InputError, MissingExtra, StoreError
from mpad.extras import install_command, require
from mpad.files.cache import cache_folder, open_cache
from mpad.text.distilled import digest_files, installed_transformer, quiet_transformers

WORDS, MINILM = "words", "minilm"
_NEEDED = "config.json", "tokenizer.json", "model.safetensors"
_LIMITS = "sentence_bert_config.json"
_OVERLAP = 4  # windows overlap by a quarter
_LONGEST = 512  # tokens of a window, whatever the transformer's configuration allows
_BATCH = 1 << 11  # tokens per batch, padding included: larger batches do not fit a CPU's cache
_TOGETHER = 2_048  # documents whose features are in memory at the same time during prediction
_KEPT = 32  # least number of new texts whose states are written to disk
_SURROGATES = re.compile("[\ud800-\udfff]")  # halves of surrogate pairs, which the tokenizers of transformers reject

States = NDArray[np.float16]
Spans = Sequence[tuple[int, int]]


@dataclass(frozen=True)
class Transformer:
    """A reference to the transformer behind a model's features; a model folder stores this, not the transformer."""

    name: str  # "minilm", or a folder
    digest: str  # of its weights, tokenizer and configuration

    def word_states(self, texts: Sequence[str], spans: Sequence[Spans], device: str = "cpu") -> States:
        """Return the states of all words of some texts, given the spans of the words: (words, width)."""
        loaded = self._load(device)
        kept = open_cache(cache_folder() / "states" / self.digest[:16], loaded.width)
        keys = [self._key(text, places) for text, places in zip(texts, spans, strict=True)]
        states: list[Any] = kept.get(keys)
        new = [k for k, known in enumerate(states) if known is None]
        for k, own in zip(new, loaded.states([texts[k] for k in new], [spans[k] for k in new]), strict=True):
            states[k] = own
        if len(new) >= _KEPT:
            kept.put([keys[k] for k in new], [states[k] for k in new])
        return np.concatenate([np.zeros((0, loaded.width), np.float16), *states])

    @property
    def width(self) -> int:
        """Length of a state."""
        return self._load("cpu").width

    def _load(self, device: str) -> "_LoadedTransformer":
        """Load the transformer; raise if it is not installed or is not the one of training."""
        folder = _find_folder(self.name)
        if _digest(folder) != self.digest:
            raise StoreError(
                f"this model's features come from '{self.name}', digest {self.digest[:12]}, but the transformer in "
                f"{folder} has the digest {_digest(folder)[:12]}: install the one of its training, or fit it again"
            )
        return _load_transformer(folder, device)

    def _key(self, text: str, spans: Spans) -> str:
        places = np.array(spans, "<i8").tobytes()
        digest = hashlib.blake2b(places + text.encode("utf-8", "surrogatepass"), key=self.digest.encode()[:64])
        return digest.hexdigest()[:32]


def chunk_texts(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """Split documents into chunks whose states fit into memory together; no documents are one empty chunk."""
    yield from (texts[first : first + _TOGETHER] for first in range(0, max(len(texts), 1), _TOGETHER))


def as_transformer(features: Any) -> Transformer | None:
    """Return the transformer named by a `features` option ("minilm" or a folder); None for "words"."""
    if not isinstance(features, (str, Path)) or not str(features):
        raise InputError(f"features must be '{WORDS}', '{MINILM}' or the folder of a transformer, not {features!r}")
    return None if features == WORDS else Transformer(str(features), _digest(_find_folder(str(features))))


@cache
def _find_folder(name: str) -> Path:
    if name == MINILM:
        installed = installed_transformer()
        if installed is None:
            raise MissingExtra(f"the transformer '{MINILM}' is needed here: {install_command('vectors')}")
        return installed
    if not all((Path(name) / file).is_file() for file in _NEEDED):
        raise InputError(
            f"no features '{name}': expected '{WORDS}', '{MINILM}' or the folder of a sentence transformer, with files "
            f"{', '.join(_NEEDED)} (download one of a hub first)"
        )
    return Path(name)


@cache
def _digest(folder: Path) -> str:
    return digest_files(folder, [name for name in (_LIMITS, *_NEEDED) if (folder / name).is_file()])


class _LoadedTransformer:
    """A transformer in memory."""

    def __init__(self, folder: Path, device: str) -> None:
        transformers, tokenizers = (require(name, extra="vectors") for name in ("transformers", "tokenizers"))
        try:
            with quiet_transformers():
                model = transformers.AutoModel.from_pretrained(
                    str(folder), local_files_only=True, use_safetensors=True, trust_remote_code=False
                )
            self._tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        except Exception as error:  # of many libraries
            reason = (str(error).splitlines() or [""])[0]
            raise InputError(
                f"{folder}: not a transformer that can be read: {type(error).__name__}: {reason}"
            ) from None
        self._model, self._device = model.float().eval().to(device), device
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self.width = int(model.config.hidden_size)
        framed, bare = (self._tokenizer.encode("a", add_special_tokens=special).ids for special in (True, False))
        at = next(k for k in range(len(framed)) if framed[k : k + len(bare)] == bare)
        self._before, self._after = framed[:at], framed[at + len(bare) :]
        longest = min(_LONGEST, int(getattr(model.config, "max_position_embeddings", _LONGEST)), _read_limit(folder))
        self._window = longest - len(self._before) - len(self._after)

    def states(self, texts: Sequence[str], spans: Sequence[Spans]) -> Iterator[States]:
        """Return the states of the words of each text: (words, width)."""
        cut = self._tokenizer.encode_batch(
            [_SURROGATES.sub("\ufffd", text) for text in texts], add_special_tokens=False
        )
        for own, places, states in zip(cut, spans, self._piece_states([one.ids for one in cut]), strict=True):
            yield _average_tokens(states, np.array(own.offsets).reshape(-1, 2), np.array(places).reshape(-1, 2))

    def _piece_states(self, pieces: Sequence[Sequence[int]]) -> list[NDArray[np.float32]]:
        """Return the last hidden states of the tokens of each text; texts of similar length share a batch."""
        torch = require("torch", extra="vectors")
        states = [np.zeros((len(ids), self.width), np.float32) for ids in pieces]
        windows = [(text, *part) for text, ids in enumerate(pieces) for part in split_windows(len(ids), self._window)]
        windows.sort(key=lambda window: window[2] - window[1])
        while windows:
            longest = windows[-1][2] - windows[-1][1] + len(self._before) + len(self._after)
            batch = windows[-max(1, _BATCH // longest) :]
            del windows[-len(batch) :]
            ids, mask = (torch.zeros(len(batch), longest, dtype=torch.int64) for _ in range(2))
            for row, (text, first, last, _, _) in enumerate(batch):
                own = [*self._before, *pieces[text][first:last], *self._after]
                ids[row, : len(own)], mask[row, : len(own)] = torch.tensor(own), 1
            with torch.inference_mode():
                hidden = self._model(input_ids=ids.to(self._device), attention_mask=mask.to(self._device))
            rows = hidden.last_hidden_state.float().cpu().numpy()
            for row, (text, first, _, begin, end) in enumerate(batch):
                at = len(self._before) - first
                states[text][begin:end] = rows[row, begin + at : end + at]
        return states


_load_transformer = cache(_LoadedTransformer)


def split_windows(n: int, size: int) -> list[tuple[int, int, int, int]]:
    """Return windows over n tokens, each with the part of it whose states are used: (first, last, begin, end)."""
    if n <= size:
        return [(0, n, 0, n)] if n else []
    step = max(1, size - size // _OVERLAP)
    starts = [*range(0, n - size, step), n - size]
    cuts = [0, *[(before + size + after) // 2 for before, after in zip(starts, starts[1:], strict=False)], n]
    return [(first, first + size, *cut) for first, cut in zip(starts, zip(cuts, cuts[1:], strict=False), strict=True)]


def _average_tokens(states: NDArray[np.float32], pieces: NDArray[np.int64], words: NDArray[np.int64]) -> States:
    """Return the mean state of the tokens that overlap each word, given the spans of both: (words, width)."""
    first = np.searchsorted(pieces[:, 1], words[:, 0], side="right")  # first token that ends after the word starts
    last = np.maximum(np.searchsorted(pieces[:, 0], words[:, 1], side="left"), first)
    count = (last - first)[:, None].astype(np.float32)
    runs = np.stack([first, last], axis=1).ravel()  # every other sum is of a word; `last` may be the number of tokens
    sums = np.add.reduceat(np.pad(states, ((0, 1), (0, 0))), runs)[::2]
    return np.where(count > 0, sums / np.maximum(count, 1), 0).astype(np.float16)


def _read_limit(folder: Path) -> int:
    """Return the number of tokens that a sentence transformer was configured to read."""
    try:
        return max(8, int(json.loads((folder / _LIMITS).read_text(encoding="utf-8"))["max_seq_length"]))
    except (OSError, ValueError, TypeError, KeyError):
        return _LONGEST
