"""The research half: baselines, datasets, and the experiments that regenerate the tables of the paper."""
