"""Names of capsmith 0.1, for author code that still uses them; removed in release 0.3."""
