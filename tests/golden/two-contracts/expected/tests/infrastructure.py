"""What the conformance kit in ``tests/generated`` has to know of your infrastructure.

The kit runs your reconcilers against a fake API server and watches what they do to the
infrastructure. When the simulated cloud makes way for a real one, let ``start`` put a test double
of it in place, and the two methods below say what exists there.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_api_provider_harbour.cloud import SimulatedCloud


class Infrastructure:
    """A test double of the infrastructure, fresh for each test."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def start(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Make reconcilers that are created from now on use the test double."""
        monkeypatch.setenv("CAPSMITH_SIMULATED_CLOUD_DIR", str(self._folder))
        SimulatedCloud(self._folder)

    def servers(self) -> list[str]:
        """The servers that exist, by whatever names them."""
        return self._names("servers")

    def clusters(self) -> list[str]:
        """The cluster-wide infrastructure that exists, by whatever names it."""
        return self._names("clusters")

    def _names(self, part: str) -> list[str]:
        return sorted(path.stem for path in (self._folder / part).glob("*.json"))
