"""Certificates and kubeconfig Secrets of clusters."""
