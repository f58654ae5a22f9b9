"""Turn the CRDs of an existing provider into a provider.yaml that generates them again.

Pure: nothing here opens a file or prints.
"""
