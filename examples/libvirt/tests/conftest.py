"""Fixtures of the unit tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from .infrastructure import Infrastructure


@pytest.fixture
def hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Infrastructure:
    """Hosts with nothing but an image."""
    double = Infrastructure(tmp_path)
    double.start(monkeypatch)
    return double
