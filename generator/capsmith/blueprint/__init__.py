"""Blueprints: the templates for the files in a provider's repository."""
