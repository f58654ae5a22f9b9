"""Kindle."""
