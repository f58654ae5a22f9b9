"""Your code: what the infrastructure looks like, one module a kind."""
