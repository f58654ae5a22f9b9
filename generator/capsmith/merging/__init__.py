"""Regenerate a repository by merging the last generated tree, the files on disk, and the new
tree."""
