"""Read the manifests of any provider: YAML, variables, kustomizations, CRDs, releases."""
