"""How a model learns."""
