"""provider.yaml as authors write it."""
