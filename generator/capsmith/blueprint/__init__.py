"""Blueprints: the files of a provider's repository, and the templates for them."""
