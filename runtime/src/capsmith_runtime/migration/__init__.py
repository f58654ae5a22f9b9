"""Migration of stored objects to their CRD's storage version."""
