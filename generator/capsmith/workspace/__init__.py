"""Everything that touches the disk: reading input, applying a tree, the cache."""
