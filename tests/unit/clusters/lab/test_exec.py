"""A command in a lab that another command starts at the same time."""

from __future__ import annotations

from pathlib import Path

import pytest

from capsmith.clusters.lab.exec import execute
from capsmith.clusters.lab.folder import LabFolder
from capsmith.clusters.lab.provider import ProviderRepository
from capsmith.clusters.lab.up import UpRequest
from capsmith.errors import Refused


class ImportableProvider(ProviderRepository):
    """A provider whose manager is known to start."""

    def check_manager(self) -> None:
        """Accept the manager."""


class LabOfAnother(LabFolder):
    """A lab that another command starts after this one has looked whether it is running."""

    looks = 0

    @property
    def is_running(self) -> bool:
        """Return False at the first look only."""
        self.looks += 1
        return self.looks > 1


def test_a_lab_that_another_command_has_started_is_not_ended(tmp_path: Path) -> None:
    lab = LabOfAnother(tmp_path / "labs" / "acme")
    lab.root.mkdir(parents=True)
    lab.state.write_text("{}")
    provider = ImportableProvider(tmp_path, {"name": "acme"}, "acme")
    with pytest.raises(Refused) as raised:
        execute(provider, lab, UpRequest("v1.14"), ["true"], lambda text: None)
    assert raised.value.finding.id == "lab-exists"
    assert lab.state.is_file()
