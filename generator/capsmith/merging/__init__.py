"""Regeneration: merge the last generated tree, the disk and the incoming tree."""
