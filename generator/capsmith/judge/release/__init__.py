"""Verify the release of any provider: what breaks under which release of core."""
