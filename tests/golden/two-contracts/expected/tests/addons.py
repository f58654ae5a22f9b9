"""Connect the conformance kit to what your add-ons install in workload clusters.

The kit runs your reconcilers against clusters in memory, whose objects `workload` reads and writes.
If your reconcilers use anything else, such as Helm or a registry, let ``start`` replace that with a
test double, and let ``installed`` report what it has done.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from capsmith_runtime.testing.addon import WorkloadObjects


class Addons:
    """A test double of what add-ons install, fresh for each test."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def start(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Make reconcilers that are created from now on use the test double: nothing to do."""

    def installed(self, cluster: str, objects: WorkloadObjects) -> list[str]:
        """Return the name of each ConfigMap of an add-on that exists on a cluster."""
        return [each["metadata"]["name"] for each in objects.all("ConfigMap")]
