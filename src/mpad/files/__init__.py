"""Untrusted files, read with limits; and our own files, written atomically."""
