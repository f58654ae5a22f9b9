"""Convert an existing provider's CRDs to a provider.yaml that generates them.

Pure: opens no files and prints nothing.
"""
