"""Upgrade a provider from one contract to the next: edits of provider.yaml, and their effects."""
