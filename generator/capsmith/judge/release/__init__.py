"""Verify any provider's releases: report what breaks, and in which release of core."""
