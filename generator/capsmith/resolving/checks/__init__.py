"""Checks that compare keys of a description; :mod:`capsmith.resolving.resolve` lists them."""
