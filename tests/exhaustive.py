"""Parameters that take long and seldom find more than others: see `--exhaustive`."""

from __future__ import annotations

import pytest
from _pytest.mark import ParameterSet


def exhaustive(*values: object) -> list[ParameterSet]:
    """Return parameters of a test or fixture that are left out without ``--exhaustive``."""
    return [pytest.param(each, marks=pytest.mark.exhaustive) for each in values]
