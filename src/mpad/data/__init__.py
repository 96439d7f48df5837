"""Read documents and labels from files, check them, and turn them into arrays."""
