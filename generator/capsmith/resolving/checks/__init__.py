"""Checks across the keys of a description; :mod:`capsmith.resolving.resolve` lists them."""
