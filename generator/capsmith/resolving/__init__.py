"""Resolve a description: draft, checks, provider."""
