"""Read YAML within limits, with the position of every key and value, and edit it in place."""
