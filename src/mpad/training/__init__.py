"""Training on corpora that do not fit into memory, by one process or by several."""
