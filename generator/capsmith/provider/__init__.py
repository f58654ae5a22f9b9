"""The resolved provider: complete and valid names, kinds and fields."""
