"""What the conformance kit in ``tests/generated`` has to know of who runs your control planes.

The kit runs your reconcilers against a fake API server and watches what they do. When the
simulated cloud makes way for a real one, let ``start`` put a test double of it in place, and the
other methods say what exists there.
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
        """The version of each control plane that exists, by whatever names it."""
        hosted = HostedControlPlanes(SimulatedCloud(self._folder))
        names = (path.stem for path in (self._folder / "control-planes").glob("*.json"))
        found = (hosted.find(name) for name in names)
        return {each.id: each.version for each in found if each is not None}

    def change_credentials(self, monkeypatch: pytest.MonkeyPatch, kubeconfig: str) -> None:
        """Let the service say from now on that this is the kubeconfig of all control planes."""
        path = self._folder / "kubeconfig"
        path.write_text(kubeconfig)
        monkeypatch.setenv("CAPSMITH_SIMULATED_KUBECONFIG", str(path))
