"""Fixtures of the unit tests, and settings of moto, which it reads when it is imported."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

os.environ["MOTO_AMIS_PATH"] = str(Path(__file__).with_name("amis.json"))

if TYPE_CHECKING:
    from .infrastructure import Infrastructure


@pytest.fixture
def aws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Infrastructure:
    """An empty AWS."""
    from .infrastructure import Infrastructure

    double = Infrastructure(tmp_path)
    double.start(monkeypatch)
    return double
