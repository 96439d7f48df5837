"""The linear part: TF-IDF n-gram scores on words and word pairs, and how they join the network."""
