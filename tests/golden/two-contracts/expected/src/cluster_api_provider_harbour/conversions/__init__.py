"""Conversion of your fields between API versions, one module for each kind and version."""
