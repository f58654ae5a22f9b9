"""Clusters' certificates and kubeconfig Secrets."""
