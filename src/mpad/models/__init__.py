"""Batch → logits, one file per model."""
