"""Resolve a description into a provider: derive a draft, check it, and build the model."""
