"""Verify any provider's releases: find out what breaks, and under which release of core."""
