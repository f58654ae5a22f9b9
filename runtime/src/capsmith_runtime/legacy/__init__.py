"""Names of capsmith 0.1, for author code that was written with it; gone in release 0.3."""
