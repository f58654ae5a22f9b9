"""Descriptions that are refused: a folder each, with what capsmith says about it.

``python -m tests.invalid`` writes the expected findings again; read the difference.
"""
