"""Validation and defaults of Nimbus Cloud."""
