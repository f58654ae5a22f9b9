"""Keel."""
