"""The model of provider.yaml, and the checks of its form."""
