"""What scoring and packing cost, measured and simulated: `python -m benchmarks.scale` writes docs/SCALE.md."""
