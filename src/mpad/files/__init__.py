"""Files as strangers hand them in, read with limits; and files of ours, written whole or not at all."""
