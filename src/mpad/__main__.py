"""`python -m mpad`: the command line, as torchrun starts it."""

from mpad._cli.main import main

main()
