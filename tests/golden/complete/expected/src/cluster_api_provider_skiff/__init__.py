"""Skiff."""
