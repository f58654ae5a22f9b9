"""The static blueprints below ``_generated`` as a package."""

from __future__ import annotations

from tests.contract_code.assembled import importable

# Test modules import the package at their top, so it has to be there before they are read.
importable()
