"""Files to score: which there are, where each one's answers go, what is done already; and one of them, scored."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from mpad.data.readers import matching_files
from mpad.data.tables import KINDS
from mpad.errors import InputError, MPADError, StoreError
from mpad.files.archives import PACKED
from mpad.files.atomic import clear_temporary, temporary_files
from mpad.scale.answers import Asked
from mpad.scale.predictor import answerer_of, model_digest
from mpad.scale.shards import open_shard, read_key, write_answers


@dataclass(frozen=True)
class Task:
    """A file, and the file that its answers go to."""

    source: Path
    out: Path


@dataclass(frozen=True)
class Outcome:
    """What came of a file."""

    task: Task
    rows: int = 0
    error: str | None = None
    fatal: bool = False  # whether no other file can be scored either


@dataclass(frozen=True)
class Job:
    """A model and what is asked of it: what every worker gets."""

    folder: Path
    digest: str
    asked: Asked
    text: str | None = None  # the column; guessed in every file if not named
    tokenizer: str | None = None

    def key(self, source: Path) -> str:
        """Everything that a file's answers depend on."""
        stat = source.stat()
        model = {"model": self.digest, "tokenizer": self.tokenizer, "text": self.text, **asdict(self.asked)}
        return json.dumps({**model, "input": source.name, "bytes": stat.st_size, "modified": stat.st_mtime_ns})

    def is_done(self, task: Task) -> bool:
        """Whether the answers are there, whole: of this file, by this model, with these settings."""
        try:
            return read_key(task.out) == self.key(task.source)
        except OSError:
            return False

    def score(self, task: Task) -> Outcome:
        """Answer a file; whatever is wrong with it costs no other."""
        try:
            answerer = answerer_of(self.folder, self.tokenizer, self.asked, self.digest)
        except (MPADError, OSError) as error:
            return Outcome(task, error=str(error), fatal=True)
        try:
            key = self.key(task.source)
            return Outcome(task, write_answers(open_shard(task.source, self.text), answerer, task.out, key))
        except StoreError as error:  # the answers cannot be written
            return Outcome(task, error=str(error), fatal=True)
        except Exception as error:  # this file's alone, and its name stands in the line
            said = str(error) if isinstance(error, MPADError) else f"{type(error).__name__}: {error}"
            return Outcome(task, error=said if str(task.source) in said else f"{task.source}: {said}")


def make_job(folder: Path, text: str | None, asked: Asked, tokenizer: str | None) -> Job:
    """A job for this model, which is read once here: what is wrong with it is said before any worker starts."""
    folder = folder.absolute()
    digest = model_digest(folder)
    answerer_of(folder, tokenizer, asked, digest)
    return Job(folder, digest, asked, text, tokenizer)


def make_tasks(data: str, out: Path) -> list[Task]:
    """A task for each file of a name, a folder or a pattern; all answers go to the folder `out`."""
    files = matching_files(data)
    if files[0].is_dir():
        files = _files_of(files[0], out)
    tasks = [Task(file.absolute(), out.absolute() / f"{_base(file)}.parquet") for file in files]
    _check_apart(tasks)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{out}: cannot be made: {error.strerror}; choose another folder") from None
    foreign = [task.out for task in tasks if task.out.exists() and read_key(task.out) is None]
    if foreign:
        raise InputError(f"{foreign[0]} is there already, and mpad predict did not write it; choose another folder")
    clear_temporary(temporary_files(out))
    return tasks


def _files_of(folder: Path, out: Path) -> list[Path]:
    """The data files of a folder; refused where folders in it hold others, but for answers and hidden ones."""
    every = sorted(file for file in folder.rglob("*") if file.is_file() and _is_data(file))
    files = [file for file in every if file.parent == folder]
    for file in every:
        way = file.relative_to(folder)
        hidden = any(part.startswith((".", "_")) for part in way.parts)
        if file.parent != folder and not hidden and not file.resolve().is_relative_to(out.resolve()):
            raise InputError(
                f"{folder}: holds folders of data files, too, which are not read ({way}): score each folder into one "
                "of its own, or name the files by a pattern"
            )
    if not files:
        raise InputError(f"{folder}: holds no data files ({', '.join(KINDS)})")
    return files


def _check_apart(tasks: Sequence[Task]) -> None:
    """Refuse tasks that would write over one another, or over what is to be read."""
    sources = {task.source.resolve() for task in tasks}
    first: dict[Path, Path] = {}
    for task in tasks:
        if task.out.resolve() in sources:
            raise InputError(f"{task.out} is to be read and cannot be written too; choose another folder for answers")
        other = first.setdefault(task.out, task.source)
        if other != task.source:
            raise InputError(
                f"the answers of {other} and of {task.source} would both be {task.out}; score them into two folders"
            )


def _is_data(file: Path) -> bool:
    kinds = [suffix.lower() for suffix in file.suffixes if suffix.lower() not in PACKED]
    return not file.name.startswith((".", "_")) and bool(kinds) and kinds[-1] in KINDS  # _SUCCESS is no data


def _base(file: Path) -> str:
    """The name without the endings that say how it is written."""
    name = file.name
    while (suffix := Path(name).suffix).lower() in PACKED:
        name = name.removesuffix(suffix)
    suffix = Path(name).suffix
    return name.removesuffix(suffix) if suffix.lower() in KINDS else name
