"""Regenerate a repository: merge the tree generated last, the files on disk, and the new tree."""
