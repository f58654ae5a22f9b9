"""Identities, which hold the credentials for the infrastructure, and the Secrets that they name."""
