"""Upgrade a provider from one contract version to the next: edits to provider.yaml, and their
effects.
"""
