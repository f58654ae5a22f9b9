"""The resolved provider, and the Kubernetes objects that follow from it."""
