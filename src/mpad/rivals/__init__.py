"""Rivals that are no networks of ours: features and a linear model on top, or a library's own classifier."""
