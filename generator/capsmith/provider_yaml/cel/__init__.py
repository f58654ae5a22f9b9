"""Validation rules in the Common Expression Language, compiled as the API server compiles them."""
