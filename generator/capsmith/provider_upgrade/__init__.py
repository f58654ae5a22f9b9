"""Upgrade from one contract to the next: changes of provider.yaml, and their consequences."""
