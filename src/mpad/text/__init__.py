"""Text → tokens → ids, and the vectors of the words."""
