"""Convert the CRDs of an existing provider to a provider.yaml that generates them again.

Pure: opens no files and prints nothing.
"""
