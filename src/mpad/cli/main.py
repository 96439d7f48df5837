"""`mpad`: the main command."""

import sys
import warnings
from importlib import import_module
from io import TextIOWrapper
from typing import Annotated, Any

import typer
from typer import Option
from typer.core import TyperGroup

from mpad._version import __version__
from mpad.errors import DataWarning, MPADError
from mpad.text.printable import printable

_COMMANDS = (
    "demo doctor label fit tune pretrain predict evaluate thresholds report explain embed info export compare "
    "reproduce serve data"
).split()


class _LazyGroup(TyperGroup):
    """Group of commands, each imported when it is used."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands, in the order of --help."""
        return _COMMANDS

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command; None if there is none of that name."""
        if cmd_name not in _COMMANDS:
            return None
        module = import_module(f"mpad.cli.{cmd_name}")
        if cmd_name == "data":
            return typer.main.get_command(module.app)
        single = typer.Typer(rich_markup_mode="markdown", add_completion=False)
        single.command(cmd_name)(module.run)
        return typer.main.get_command(single)


app = typer.Typer(
    name="mpad",
    cls=_LazyGroup,
    help="Explainable text classification with graph neural networks.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    add_completion=False,
)


# Base class of all errors in a command line; typer exports only this subclass.
_UsageError: type[Exception] = typer.BadParameter.__bases__[0]


def _print_version(requested: bool) -> None:
    if requested:
        typer.echo(f"mpad {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, Option("--version", help="Show the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Explainable text classification with graph neural networks."""


def main() -> None:
    """Run a command; print errors as one line. Exit code 2 is a usage error, 1 any other error."""
    warnings.showwarning = _show_warning
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # lone surrogates, and letters that the terminal cannot encode
            stream.reconfigure(errors="backslashreplace")
    try:
        sys.exit(app(standalone_mode=False))
    except _UsageError as error:
        sys.exit(_report_usage_error(error))
    except BrokenPipeError:  # the reader, such as head, closed the pipe
        sys.stderr.close()
        sys.exit(0)
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(130)
    except (MPADError, OSError) as error:
        _report(str(error))
        sys.exit(1)
    except MemoryError:
        _report("this takes more memory than the machine has: give fewer or shorter documents, or a smaller network")
        sys.exit(1)


def _report_usage_error(error: Any) -> int:
    """Print a usage error with a hint on --help, and return the exit code; a bare command has printed its help."""
    message = error.format_message().strip()
    if message:
        command = error.ctx.command_path if error.ctx is not None else "mpad"
        _report(f"{message.rstrip('.')}; see {command} --help")
    return int(error.exit_code)


def _report(message: str) -> None:
    sys.stderr.write(f"mpad: {printable(' '.join(message.split()))}\n")


def _show_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, file: Any = None, line: Any = None
) -> None:
    """Print data warnings without their source location, which matters only in others."""
    _report(
        f"warning: {message}" if category is DataWarning else f"{filename}:{lineno}: {category.__name__}: {message}"
    )
