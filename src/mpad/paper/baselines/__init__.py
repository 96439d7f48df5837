"""Baselines that are no networks of ours, behind the same interface."""
