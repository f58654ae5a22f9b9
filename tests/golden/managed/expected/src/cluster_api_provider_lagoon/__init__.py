"""Lagoon."""
