"""The resolved provider: names, kinds and fields, all decided and valid."""
