"""A model's folder: its files, checked, without torch."""
