"""The whole flow as one value, text → label, and its folder."""
