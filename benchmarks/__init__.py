"""Speed and memory against the straightforward way. `python -m benchmarks` runs all of it."""
