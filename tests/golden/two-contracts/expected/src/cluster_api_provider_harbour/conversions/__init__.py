"""Conversion of your fields between API versions, one module a kind and version."""
