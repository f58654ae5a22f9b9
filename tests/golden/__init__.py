"""Whole expected repositories.

A case is a folder ``tests/golden/<case>/expected``; its spec is ``examples/<case>/provider.yaml``,
or ``tests/golden/<case>/provider.yaml`` where that exists.  After a change of the output run
``python -m tests.golden.update``, read the diff, and commit both together.
"""
