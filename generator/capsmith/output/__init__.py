"""Content generated from a provider: CRDs, permissions, classes, documentation."""
