"""The resolved provider: its names, kinds and fields, all of them complete and valid."""
