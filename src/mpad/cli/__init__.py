"""The command line, one file per command, each a few lines over the library."""
