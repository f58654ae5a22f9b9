"""Conversion of objects between API versions."""
