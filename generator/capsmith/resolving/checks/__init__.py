"""Checks across the keys of a description, which the model alone cannot make."""
