"""Starting a provider's managers in a lab."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from capsmith.clusters.lab.connection import LabConnection
from capsmith.clusters.lab.folder import LabFolder
from capsmith.clusters.lab.installed import InstalledProvider
from capsmith.clusters.lab.provider import ProviderRepository


class _Manager:
    process = SimpleNamespace(pid=0)

    def start(self) -> None:
        """Start nothing."""


class _Provider:
    def check_manager(self) -> None:
        """Find nothing wrong."""


class _Connection:
    def __init__(self, root: Path) -> None:
        self.lab = LabFolder(root)
        self.folder = root


@pytest.mark.parametrize(("type_", "remains"), [("infrastructure", False), ("control-plane", True)])
def test_only_infrastructure_resets_the_simulated_cloud(
    tmp_path: Path, type_: str, remains: bool
) -> None:
    """A control plane provider starts after the simulated infrastructure, which uses the cloud."""
    connection = _Connection(tmp_path)
    servers = connection.lab.cloud / "servers"
    servers.mkdir(parents=True)
    provider = cast(ProviderRepository, _Provider())
    installed = InstalledProvider(provider, cast(LabConnection, connection), lambda _: None)
    managers: dict[str, Any] = {type_: _Manager()}
    installed._managers = managers
    installed.start()
    assert servers.is_dir() is remains
