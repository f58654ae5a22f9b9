"""Conversion between JSON objects and the typed API models."""
