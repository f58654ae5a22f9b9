"""Content generated from a provider: CRDs, permissions, Python classes, documentation."""
