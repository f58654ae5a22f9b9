"""Access to the disk: read input, apply changes, keep a cache."""
