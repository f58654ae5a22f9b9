"""Access the disk: read input, apply changes, cache results."""
