"""Rule -> data file -> generated file -> what proves it, gathered from where each of them stands.

`python -m tests.traceability` writes docs/traceability.md anew and says what is missing.
"""
