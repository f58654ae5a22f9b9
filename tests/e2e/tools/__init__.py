"""Build the tools for the tests: `python -m tests.e2e.tools` does it ahead of their first use."""
