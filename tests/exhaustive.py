"""Tests that run with ``--exhaustive`` only."""

from __future__ import annotations

import pytest
from _pytest.mark import ParameterSet


def exhaustive(*values: object) -> list[ParameterSet]:
    """Return parameters of a test or fixture that take long and seldom find more than others."""
    return [pytest.param(each, marks=pytest.mark.exhaustive) for each in values]


def short(*values: object) -> list[ParameterSet]:
    """Return parameters with which only tests marked `life` run for each change."""
    return [pytest.param(each, marks=pytest.mark.short) for each in values]


def older(*values: object) -> list[ParameterSet]:
    """Return parameters with which tests marked `newest` do not run for each change."""
    return [pytest.param(each, marks=pytest.mark.older) for each in values]


def is_left_out(item: pytest.Item) -> bool:
    """Report whether a test runs with ``--exhaustive`` only."""
    if item.get_closest_marker("short"):
        return item.get_closest_marker("life") is None
    if item.get_closest_marker("older") and item.get_closest_marker("newest"):
        return True
    return item.get_closest_marker("exhaustive") is not None
