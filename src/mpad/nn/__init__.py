"""The layers, one equation each."""
