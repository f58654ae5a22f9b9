"""Validation rules in the Common Expression Language (CEL), compiled as by the API server."""
