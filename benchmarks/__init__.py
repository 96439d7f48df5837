"""Speed, accuracy and scale, with their records; `python -m benchmarks` measures speed on a CPU."""
