"""Upgrade a provider from one contract to the next: edits to provider.yaml, and their effects."""
