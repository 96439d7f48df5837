"""`mpad`: the command that holds the others."""

import sys
from typing import Annotated

import typer

from mpad.cli import compare, corpora, demo, evaluate, explain, fit, info, predict, reproduce, serve
from mpad.errors import MPADError
from mpad.version import __version__

app = typer.Typer(
    name="mpad",
    help="Documents as graphs of words, classified by passing messages over them.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    add_completion=False,
)


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


for module in (demo, fit, predict, evaluate, explain, info, compare, reproduce, serve):
    app.command(module.__name__.rpartition(".")[2])(module.run)

app.add_typer(corpora.app, name="data")


def main() -> None:
    """Run a command; an error of ours, or of the file system, is one line and exit code 1, never a traceback."""
    try:
        app()
    except BrokenPipeError:  # the reader, such as head, has seen enough
        sys.stderr.close()
        sys.exit(0)
    except KeyboardInterrupt:
        sys.exit(130)
    except (MPADError, OSError) as error:
        sys.stderr.write(f"mpad: {' '.join(str(error).split())}\n")
        sys.exit(1)
