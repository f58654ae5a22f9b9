"""Access the disk: read input, apply changes, and cache results."""
