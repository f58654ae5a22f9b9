"""Verify the releases of any provider: find what breaks under which release of core."""
