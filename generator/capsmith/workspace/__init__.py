"""Access to the disk: read input, apply changes, cache results."""
