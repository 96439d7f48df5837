"""Model folders made worse: damaged by accident, or changed on purpose, with checksums that are made true again."""

import hashlib
import json
import random
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file

from mpad.errors import MPADError
from mpad.export import export_int8
from security import mutate
from security.outcome import Case

PROBES = ["a good film", "[open('EXECUTED', 'w').write('x') and 'good']", "", "bad. Two sentences! touch EXECUTED"]
_RUNS = {"exec", "compile", "os.system", "os.exec", "os.posix_spawn", "subprocess.Popen", "ctypes.dlopen", "pty.spawn"}
_VARIANTS = [
    ("mpad", "paper"),
    ("mpad", "authors"),
    ("mpad", "best"),
    ("clique", "paper"),
    ("path", "authors"),
    ("sentence-att", "paper"),
]


class Folders:
    """A few whole models, each case one of them made worse in one way; both loaders are asked."""

    def __init__(self, on_purpose: bool) -> None:
        self._on_purpose, self._root = on_purpose, Path(tempfile.mkdtemp())
        self._executed: list[str] = []
        self._watching = False
        warnings.simplefilter("error")  # a warning of NumPy's is a number that nobody expected
        for number, (variant, preset) in enumerate(_VARIANTS):
            _train(variant, preset).save(self._root / str(number))
        export_int8(self._root / "0", self._root / str(len(_VARIANTS)))
        self._n_models = len(_VARIANTS) + 1
        self._known = [_answers(self._root / str(number)) for number in range(self._n_models)]
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: Any) -> None:
        if self._watching and event in _RUNS:
            self._executed.append(f"{event} {arguments!r:.100}")

    def __call__(self, number: int) -> str:
        """Try one case."""
        generator = random.Random(number)
        which = generator.randrange(self._n_models)
        folder = self._root / "case"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self._root / str(which), folder)
        (_change if self._on_purpose else _damage)(folder, generator)
        if self._on_purpose:
            seal(folder)
        self._executed.clear()
        self._watching = True
        try:
            found = _answers(folder)
        finally:
            self._watching = False
        if self._executed or Path("EXECUTED").exists():
            return f"executed: {self._executed}"
        return self._judged(found, self._known[which])

    def _judged(self, found: list[Any], known: list[Any]) -> str:
        refused = [one is None for one in found]
        if all(refused):
            return "refused"
        if any(refused):
            return f"silent change: one loader refuses, the other answers {found}"
        if not all(np.isfinite(one).all() for one in found) or not np.allclose(found[0], found[1], atol=1e-4):
            return f"silent change: the loaders differ {found}"
        if not self._on_purpose and not np.array_equal(found[0], known[0]):
            return "silent change: damage went unnoticed"
        return "accepted"


def by_accident() -> Case:
    """Damage: flipped bytes, cut files, missing files."""
    return Folders(on_purpose=False)


def on_purpose() -> Case:
    """Other values, words, shapes and types, with checksums that are right."""
    return Folders(on_purpose=True)


def _train(variant: Any, preset: str) -> Any:
    from mpad import MPADClassifier

    texts = ["a good film", "a bad film", "good and moving", "bad and dull"] * 10
    options: dict[str, Any] = {"hidden": 16, "vector_size": 16, "max_epochs": 2, "random_state": 0, "device": "cpu"}
    return MPADClassifier(variant, preset=preset, **options).fit(texts, ["x", "y"] * 20)


def _answers(folder: Path) -> list[Any]:
    """Probabilities by both loaders; None where one refuses."""
    from mpad import MPADClassifier
    from mpad import inference as runtime

    loaders: list[Callable[[Path], Any]] = [runtime.load, lambda path: MPADClassifier.load(path, device="cpu")]
    found: list[Any] = []
    for load in loaders:
        try:
            model = load(folder)
            found.append(np.array([model.predict_proba([text])[0] for text in PROBES]))
        except MPADError:
            found.append(None)
    return found


def seal(folder: Path) -> None:
    """Make the checksums true again."""
    names = sorted(file.name for file in folder.iterdir() if file.name != "SHA256SUMS")
    sums = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names}
    (folder / "SHA256SUMS").write_text("".join(f"{sums[name]}  {name}\n" for name in names))


def _damage(folder: Path, generator: random.Random) -> None:
    file = generator.choice(sorted(folder.iterdir()))
    data = file.read_bytes()
    kind = generator.randrange(10)
    if kind == 0:
        file.unlink()
    elif kind < 5:
        changed = bytearray(data)
        changed[generator.randrange(len(data))] ^= 1 << generator.randrange(8)
        file.write_bytes(changed)
    else:
        file.write_bytes(mutate.bytes_of(data, data[::-1], generator))


def _change(folder: Path, generator: random.Random) -> None:
    kind = generator.randrange(10)
    if kind < 4:
        _rewrite(folder / "config.json", generator)
    elif kind < 5:
        _rewrite(folder / "vocabulary.json", generator)
    elif kind < 6:
        file = folder / generator.choice(("config.json", "vocabulary.json"))
        file.write_bytes(mutate.bytes_of(file.read_bytes(), b"", generator))
    elif kind < 7:
        _header(folder / "model.safetensors", generator)
    else:
        _tensors(folder / "model.safetensors", generator)


def _rewrite(file: Path, generator: random.Random) -> None:
    value = json.loads(file.read_text())
    for _ in range(generator.choice((1, 1, 2, 3))):
        value = mutate.json_of(value, generator)
    file.write_text(json.dumps(value))


def _header(file: Path, generator: random.Random) -> None:
    """The header of a safetensors file: its length, names, offsets, shapes and types."""
    data = file.read_bytes()
    length = int.from_bytes(data[:8], "little")
    head, rest = data[8 : 8 + length], data[8 + length :]
    if generator.random() < 0.2:
        length = generator.choice((0, 1, length - 1, length + 1, 2**31, 2**63 - 1))
    elif generator.random() < 0.5:
        head = mutate.bytes_of(head, b"", generator)
        length = len(head)
    else:
        head = json.dumps(mutate.json_of(json.loads(head), generator)).encode()
        length = len(head)
    file.write_bytes(length.to_bytes(8, "little") + head + rest)


def _tensors(file: Path, generator: random.Random) -> None:
    tensors = load_file(file)
    for _ in range(generator.choice((1, 1, 3))):
        name = generator.choice(sorted(tensors))
        value = tensors[name]
        shape = list(value.shape)
        match generator.randrange(7):
            case 0:
                del tensors[name]
            case 1 if shape:
                place = generator.randrange(len(shape))
                shape[place] = generator.choice((0, 1, shape[place] - 1, shape[place] + 1, 2 * shape[place]))
                tensors[name] = np.resize(value, shape).astype(value.dtype)
            case 2:
                tensors[name] = value.reshape(generator.choice(((-1,), (1, -1), (-1, 1), (*shape, 1))))
            case 3:
                kind = generator.choice((np.int32, np.bool_, np.float64, np.float16, np.uint8))
                with np.errstate(invalid="ignore", over="ignore"):  # an earlier change may have put in NaN
                    tensors[name] = value.astype(kind)
            case 4 if value.dtype.kind == "f" and value.size:
                tensors[name] = value.copy()
                odd = generator.choice((np.nan, np.inf, -np.inf, 3e38, -3e38, 1e-45, 65504.0, -1.0))
                with np.errstate(over="ignore"):  # 3e38 in half precision
                    tensors[name].ravel()[generator.randrange(value.size)] = odd
            case 5:
                tensors[name + generator.choice(("x", ".weight", ""))] = value
            case _:
                other = generator.choice(sorted(tensors))
                tensors[name], tensors[other] = tensors[other], tensors[name]
        if not tensors:
            break
    with np.errstate(all="ignore"):
        save_file({name: np.asarray(value, order="C") for name, value in tensors.items()}, file)
