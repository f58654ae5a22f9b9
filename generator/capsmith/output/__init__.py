"""Content generated for a provider: CRDs, permissions, Python classes, documentation."""
