"""Resolve a description into a provider: derive a draft, check it, build the model."""
