"""Nimbus Cloud."""
