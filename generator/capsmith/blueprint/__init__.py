"""Blueprints: the files of a provider repository, and their templates."""
