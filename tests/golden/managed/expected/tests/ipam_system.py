"""Connect the conformance kit to a test double of your IPAM system.

The kit runs your reconcilers against a fake API server and checks what they allocate and release.
When you replace the simulated IPAM system, let ``start`` install your test double, and let the
other methods report what is allocated in it, and make its calls fail.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from capsmith_runtime.testing.faults import VARIABLE, Faults

from cluster_api_provider_lagoon.simulated_ipam import SimulatedIpam


class IpamSystem:
    """A test double of the IPAM system, fresh for each test."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def start(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Make reconcilers that are created from now on use the test double."""
        monkeypatch.setenv("CAPSMITH_SIMULATED_IPAM_DIR", str(self._folder))
        monkeypatch.setenv(VARIABLE, f"@{self._folder / 'faults'}")

    def addresses(self) -> list[str]:
        """Return each allocated address, as often as it is allocated."""
        return SimulatedIpam(self._folder).addresses()

    def simulate(self, faults: Faults) -> None:
        """Make calls fail from now on as ``faults`` specifies; ``Faults()`` ends that.

        Raise NotImplementedError with a reason for faults that your test double cannot simulate;
        their tests are then skipped.
        """
        (self._folder / "faults").write_text(str(faults))
