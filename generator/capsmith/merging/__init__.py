"""Regeneration: what was generated before, what is on disk, what comes in."""
