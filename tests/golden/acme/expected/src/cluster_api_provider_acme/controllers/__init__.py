"""Reconcilers of this provider, one module for each kind."""
