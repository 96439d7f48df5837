"""`mpad`: the command that holds the others."""

import sys
import warnings
from io import TextIOWrapper
from typing import Annotated, Any

import typer

from mpad._version import __version__
from mpad.cli import compare, data, demo, evaluate, explain, export, fit, info, predict, report, reproduce, serve, tune
from mpad.errors import DataWarning, MPADError
from mpad.text.printable import printable

app = typer.Typer(
    name="mpad",
    help="Documents as graphs of words, classified by passing messages over them.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    add_completion=False,
)


# What is wrong with a command line: options, arguments, commands. Of these typer names this one alone.
_UsageError: type[Exception] = typer.BadParameter.__bases__[0]


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"mpad {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Documents as graphs of words, classified by passing messages over them."""


for module in (demo, fit, tune, predict, evaluate, report, explain, info, export, compare, reproduce, serve):
    app.command(module.__name__.rpartition(".")[2])(module.run)

app.add_typer(data.app, name="data")


def main() -> None:
    """Run a command; an error is one line, never a traceback: exit code 2 of a command line that is wrong, else 1."""
    warnings.showwarning = _show_warning
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # half a surrogate pair, or an alphabet that the terminal has not
            stream.reconfigure(errors="backslashreplace")
    try:
        sys.exit(app(standalone_mode=False))
    except _UsageError as error:
        sys.exit(_wrong_usage(error))
    except BrokenPipeError:  # the reader, such as head, has seen enough
        sys.stderr.close()
        sys.exit(0)
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(130)
    except (MPADError, OSError) as error:
        _say(str(error))
        sys.exit(1)
    except MemoryError:
        _say("this takes more memory than the machine has: give fewer or shorter documents, or a smaller network")
        sys.exit(1)


def _wrong_usage(error: Any) -> int:
    """Say what is wrong with a command line, and where help is; nothing where nothing was asked: help is there then."""
    said = error.format_message().strip()
    if said:
        asked = error.ctx.command_path if error.ctx is not None else "mpad"
        _say(f"{said.rstrip('.')}; see {asked} --help")
    return int(error.exit_code)


def _say(line: str) -> None:
    sys.stderr.write(f"mpad: {printable(' '.join(line.split()))}\n")


def _show_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, file: Any = None, line: Any = None
) -> None:
    """A word about the data is for the user; other warnings are for developers, and name their place."""
    _say(f"warning: {message}" if category is DataWarning else f"{filename}:{lineno}: {category.__name__}: {message}")
