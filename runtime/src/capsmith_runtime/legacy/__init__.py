"""Names of capsmith 0.1, for author code that was written with it; removed in release 0.3."""
