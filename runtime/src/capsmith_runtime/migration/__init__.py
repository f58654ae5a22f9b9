"""Migration of stored objects to the storage version of their CRD."""
