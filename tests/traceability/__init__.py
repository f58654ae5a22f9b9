"""Rule -> data file -> generated file -> proof, gathered from the files themselves.

`python -m tests.traceability` writes docs/traceability/ and reports what is missing.
"""
