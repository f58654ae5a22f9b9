"""What follows from a provider: CRDs, permissions, classes, documentation."""
