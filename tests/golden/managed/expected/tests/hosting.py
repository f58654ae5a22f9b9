"""Connect the conformance kit to a test double of the service that runs your control planes.

The kit runs your reconcilers against a fake API server. When you replace the simulated cloud, let
``start`` install a test double of your service, and let the other methods report what exists in it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_api_provider_lagoon.cloud import SimulatedCloud
from cluster_api_provider_lagoon.hosted_control_planes import HostedControlPlanes


class Hosting:
    """A test double of the service, fresh for each test."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def start(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Make reconcilers that are created from now on use the test double."""
        monkeypatch.setenv("CAPSMITH_SIMULATED_CLOUD_DIR", str(self._folder))
        monkeypatch.delenv("CAPSMITH_SIMULATED_KUBECONFIG", raising=False)
        HostedControlPlanes(SimulatedCloud(self._folder))

    def control_planes(self) -> dict[str, str]:
        """Return the version of each existing control plane by a unique name."""
        hosted = HostedControlPlanes(SimulatedCloud(self._folder))
        names = (path.stem for path in (self._folder / "control-planes").glob("*.json"))
        found = (hosted.find(name) for name in names)
        return {each.id: each.version for each in found if each is not None}

    def change_credentials(self, monkeypatch: pytest.MonkeyPatch, kubeconfig: str) -> None:
        """Make the service return this kubeconfig for all control planes from now on."""
        path = self._folder / "kubeconfig"
        path.write_text(kubeconfig)
        monkeypatch.setenv("CAPSMITH_SIMULATED_KUBECONFIG", str(path))
