"""Tools for ``schemas/compatibility.yaml``: its Go modules, its matrices, and newer releases."""
