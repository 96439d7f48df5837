"""The neural baselines of the paper."""
