"""YAML texts: read within limits, with the position of each part, and edited in place."""
