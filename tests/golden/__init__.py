"""Whole expected repositories.

A case is a folder ``tests/golden/<case>/expected``; its spec is ``examples/<case>/provider.yaml``,
or ``tests/golden/<case>/provider.yaml`` where that exists.  Four cases keep every file.  The others
keep what differs from earlier cases by more than the names of the provider: see ``expected.py``.
After a change of the output run ``./dev golden``, read the diff, and commit both together.
"""
