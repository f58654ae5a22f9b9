"""Connect the conformance kit to a test double of your IPAM system.

The kit runs your reconcilers against a fake API server. When you replace the simulated IPAM
system, let ``start`` install your test double.
"""

from __future__ import annotations

from pathlib import Path

import pytest


class IpamSystem:
    """A test double of the IPAM system, fresh for each test."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def start(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Make reconcilers that are created from now on use the test double."""
        monkeypatch.setenv("CAPSMITH_SIMULATED_IPAM_DIR", str(self._folder))
