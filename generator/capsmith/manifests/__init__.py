"""Read any provider's manifests: YAML, variables, kustomizations, CRDs, releases."""
