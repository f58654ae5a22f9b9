"""Verify any provider's releases: find what breaks under which release of core."""
