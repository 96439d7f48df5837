"""Jobs of batch prediction: input files, their output files, and prediction of one file."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from mpad.data.readers import matching_files
from mpad.data.tables import KINDS
from mpad.errors import InputError, MPADError, StoreError
from mpad.files.archives import PACKED
from mpad.files.atomic import clear_temporary, temporary_files
from mpad.scale.columns import PredictOptions
from mpad.scale.predictor import load_cached, model_digest
from mpad.scale.shards import open_shard, read_key, write_predictions

MAX_KILLS = 3  # workers killed while predicting a file before it is skipped


@dataclass(frozen=True)
class Task:
    """Input file and the file for its predictions."""

    source: Path
    out: Path

    def give_up(self) -> "Outcome":
        """Return the outcome of a file that was in progress whenever a worker was killed."""
        return Outcome(self, error=f"{self.source}: its worker was killed {MAX_KILLS} times; is there enough memory?")


@dataclass(frozen=True)
class Outcome:
    """Result of predicting one file."""

    task: Task
    rows: int = 0
    error: str | None = None
    fatal: bool = False  # no other file can be predicted either


@dataclass(frozen=True)
class Job:
    """Model and options, sent to every worker."""

    folder: Path
    digest: str
    options: PredictOptions
    text: str | None = None  # text column; None guesses it per file
    tokenizer: str | None = None

    def key(self, source: Path) -> str:
        """Return a string of everything that the predictions of a file depend on."""
        stat = source.stat()
        model = {"model": self.digest, "tokenizer": self.tokenizer, "text": self.text, **asdict(self.options)}
        return json.dumps({**model, "input": source.name, "bytes": stat.st_size, "modified": stat.st_mtime_ns})

    def is_done(self, task: Task) -> bool:
        """Return whether the output file is complete and was made from this file with this model and these options."""
        try:
            return read_key(task.out) == self.key(task.source)
        except OSError:
            return False

    def score(self, task: Task) -> Outcome:
        """Predict one file; an error in it is returned and does not affect other files."""
        try:
            model = load_cached(self.folder, self.tokenizer, self.options, self.digest)
        except (MPADError, OSError) as error:
            return Outcome(task, error=str(error), fatal=True)
        try:
            key = self.key(task.source)
            return Outcome(task, write_predictions(open_shard(task.source, self.text), model, task.out, key))
        except StoreError as error:  # the output cannot be written
            return Outcome(task, error=str(error), fatal=True)
        except Exception as error:  # concerns this file only, so the message names it
            message = str(error) if isinstance(error, MPADError) else f"{type(error).__name__}: {error}"
            return Outcome(task, error=message if str(task.source) in message else f"{task.source}: {message}")


def make_job(folder: Path, text: str | None, options: PredictOptions, tokenizer: str | None) -> Job:
    """Return a job for a model; load it once, so that its errors are raised before any worker starts."""
    folder = folder.absolute()
    digest = model_digest(folder)
    load_cached(folder, tokenizer, options, digest)
    return Job(folder, digest, options, text, tokenizer)


def make_tasks(data: str, out: Path) -> list[Task]:
    """Return a task per file of a name, a folder or a pattern; all output goes to the folder `out`."""
    files = matching_files(data)
    if files[0].is_dir():
        files = _list_folder(files[0], out)
    tasks = [Task(file.absolute(), out.absolute() / f"{_stem(file)}.parquet") for file in files]
    _check_conflicts(tasks)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{out}: cannot be made: {error.strerror}; choose another folder") from None
    foreign = [task.out for task in tasks if task.out.exists() and read_key(task.out) is None]
    if foreign:
        raise InputError(f"{foreign[0]} is there already, and mpad predict did not write it; choose another folder")
    clear_temporary(temporary_files(out))
    return tasks


def _list_folder(folder: Path, out: Path) -> list[Path]:
    """Return the data files of a folder; raise if visible subfolders other than `out` hold more."""
    every = sorted(file for file in folder.rglob("*") if file.is_file() and _is_data(file))
    files = [file for file in every if file.parent == folder]
    for file in every:
        path = file.relative_to(folder)
        hidden = any(part.startswith((".", "_")) for part in path.parts)
        if file.parent != folder and not hidden and not file.resolve().is_relative_to(out.resolve()):
            raise InputError(
                f"{folder}: holds folders of data files, too, which are not read ({path}): score each folder into one "
                "of its own, or name the files by a pattern"
            )
    if not files:
        raise InputError(f"{folder}: holds no data files ({', '.join(KINDS)})")
    return files


def _check_conflicts(tasks: Sequence[Task]) -> None:
    """Check that no task overwrites an input file or the output of another task."""
    sources = {task.source.resolve() for task in tasks}
    first: dict[Path, Path] = {}
    for task in tasks:
        if task.out.resolve() in sources:
            raise InputError(f"{task.out} is an input file and cannot be overwritten; choose another output folder")
        other = first.setdefault(task.out, task.source)
        if other != task.source:
            raise InputError(f"{other} and {task.source} would both be written to {task.out}; use two output folders")


def _is_data(file: Path) -> bool:
    kinds = [suffix.lower() for suffix in file.suffixes if suffix.lower() not in PACKED]
    return not file.name.startswith((".", "_")) and bool(kinds) and kinds[-1] in KINDS  # Spark writes a file _SUCCESS


def _stem(file: Path) -> str:
    """Return the file name without the suffixes of its format and compression."""
    name = file.name
    while (suffix := Path(name).suffix).lower() in PACKED:
        name = name.removesuffix(suffix)
    suffix = Path(name).suffix
    return name.removesuffix(suffix) if suffix.lower() in KINDS else name
