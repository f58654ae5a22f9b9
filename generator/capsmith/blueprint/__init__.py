"""Blueprints: which files a provider repository has, and their shape."""
