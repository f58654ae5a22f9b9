"""Connect the conformance kit to a test double of the service that runs your control planes.

The kit runs your reconcilers against a fake API server. When you replace the simulated cloud, let
``start`` install a test double of your service, and let the other methods report what exists in it,
and make its calls fail.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from capsmith_runtime.testing.faults import VARIABLE, Faults

from cluster_api_provider_lagoon.cloud import SimulatedCloud
from cluster_api_provider_lagoon.hosted_control_planes import HostedControlPlanes


class Hosting:
    """A test double of the service, fresh for each test."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def start(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Make reconcilers that are created from now on use the test double."""
        monkeypatch.setenv("CAPSMITH_SIMULATED_CLOUD_DIR", str(self._folder))
        monkeypatch.setenv(VARIABLE, f"@{self._folder / 'faults'}")
        monkeypatch.delenv("CAPSMITH_SIMULATED_KUBECONFIG", raising=False)
        HostedControlPlanes(SimulatedCloud(self._folder))

    def control_planes(self) -> dict[str, str]:
        """Return the version of each existing control plane by a unique name."""
        hosted = HostedControlPlanes(SimulatedCloud(self._folder))
        return {each.id: each.version for each in hosted.all()}

    def change_credentials(self, monkeypatch: pytest.MonkeyPatch, kubeconfig: str) -> None:
        """Make the service return this kubeconfig for all control planes from now on."""
        path = self._folder / "kubeconfig"
        path.write_text(kubeconfig)
        monkeypatch.setenv("CAPSMITH_SIMULATED_KUBECONFIG", str(path))

    def simulate(self, faults: Faults) -> None:
        """Make calls fail from now on as ``faults`` specifies; ``Faults()`` ends that.

        Raise NotImplementedError with a reason for faults that your test double cannot simulate;
        their tests are then skipped.
        """
        (self._folder / "faults").write_text(str(faults))
