"""Tidal."""
