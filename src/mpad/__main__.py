"""`python -m mpad`: the command line, as torchrun starts it."""

from mpad.cli.main import main

main()
