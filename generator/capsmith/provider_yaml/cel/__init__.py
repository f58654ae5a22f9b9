"""Validation rules in the Common Expression Language (CEL), compiled as the API server does."""
