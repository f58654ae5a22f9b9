"""A provider that blueprints are rendered for."""

from __future__ import annotations

from pathlib import Path

import pytest

from capsmith.commands.load import load
from capsmith.provider.model import Provider

ACME = Path(__file__).parents[3] / "examples/acme/provider.yaml"


@pytest.fixture(scope="session")
def provider() -> Provider:
    loaded = load(ACME)
    assert loaded.provider is not None
    return loaded.provider
