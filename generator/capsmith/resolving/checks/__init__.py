"""Checks that compare keys of provider.yaml. :mod:`capsmith.resolving.resolve` lists them."""
