"""Connect the conformance kit to a test double of your infrastructure.

The kit runs your reconcilers against a fake API server and checks what they create and delete in
the infrastructure. When you replace the simulated cloud, let ``start`` install a test double of
your cloud, and let the other methods report what exists in it.
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest
from capsmith_runtime.testing.faults import VARIABLE, Faults

from cluster_api_provider_acme.cloud import SimulatedCloud


class Infrastructure:
    """A test double of the infrastructure, fresh for each test."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def start(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Make reconcilers that are created from now on use the test double."""
        monkeypatch.setenv("CAPSMITH_SIMULATED_CLOUD_DIR", str(self._folder))
        monkeypatch.setenv(VARIABLE, f"@{self._folder / 'faults'}")
        monkeypatch.setenv("CAPSMITH_SIMULATED_USER_DATA", "true")
        SimulatedCloud(self._folder)

    def servers(self) -> list[str]:
        """Return a unique name of each existing server."""
        return self._names("servers")

    def remove_server(self, name: str) -> None:
        """Remove a server without the reconciler, as a cloud user or a failure would."""
        (self._folder / "servers" / f"{name}.json").unlink()

    def failure_domains(self) -> dict[str, str]:
        """Return the failure domain of each server that has one, keyed by the server's name."""
        return self._field("zone")

    def user_data(self) -> dict[str, str]:
        """Return the bootstrap data of each server, keyed by the server's name."""
        return self._field("user_data")

    def simulate(self, faults: Faults) -> None:
        """Make calls fail from now on as ``faults`` specifies; ``Faults()`` ends that.

        Raise NotImplementedError with a reason for faults that your test double cannot simulate;
        their tests are then skipped.
        """
        (self._folder / "faults").write_text(str(faults))

    def clusters(self) -> list[str]:
        """Return a unique name of the shared resources of each cluster.

        Raise NotImplementedError with a reason if your provider creates nothing for a cluster.
        """
        return self._names("clusters")

    def _field(self, name: str) -> dict[str, str]:
        """Return a field of each server that has it, keyed by the server's name."""
        found = {}
        for path in (self._folder / "servers").glob("*.json"):
            # A reconciler may delete it in the meantime.
            with contextlib.suppress(FileNotFoundError):
                if value := json.loads(path.read_text())[name]:
                    found[path.stem] = value
        return found

    def _names(self, collection: str) -> list[str]:
        return sorted(path.stem for path in (self._folder / collection).glob("*.json"))
