"""Model folders: reading, checking and writing their files without torch."""
