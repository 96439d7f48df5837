"""Accuracy, and how far explanations and held-out scores can be trusted."""
