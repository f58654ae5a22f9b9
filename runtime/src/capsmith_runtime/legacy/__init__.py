"""Deprecated capsmith 0.1 names, for existing author code; removed in release 0.3."""
