"""What the commands share about engines: what they run on, and where that is."""

from enum import StrEnum
from typing import Annotated

import typer


class Engine(StrEnum):
    """What the work runs on."""

    local = "local"
    ray = "ray"


EngineOption = Annotated[Engine, typer.Option("--engine", help="This machine's processes, or Ray.")]
Address = Annotated[
    str | None, typer.Option("--address", help="Of the Ray cluster; one is started on this machine if none is named.")
]
