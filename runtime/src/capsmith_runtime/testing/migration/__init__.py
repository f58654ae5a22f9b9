"""Scenarios about the migration of stored objects."""
