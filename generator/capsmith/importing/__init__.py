"""Convert an existing provider's CRDs to a provider.yaml that generates them again.

Pure: opens no files and prints nothing.
"""
