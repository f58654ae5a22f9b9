"""The documentation site: pages made from data, and links into the repository."""
