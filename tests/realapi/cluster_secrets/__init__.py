"""Certificates and kubeconfigs of clusters, on a real API server."""
