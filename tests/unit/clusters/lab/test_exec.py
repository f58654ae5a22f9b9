"""A command in a lab: what it finds, and a lab that another command starts at the same time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from capsmith.clusters.lab.exec import execute
from capsmith.clusters.lab.folder import LabFolder, acquire
from capsmith.clusters.lab.provider import ProviderRepository
from capsmith.clusters.lab.state import LabState, RunState, write_state
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


@pytest.fixture
def running(tmp_path: Path) -> Iterator[LabFolder]:
    """A lab that runs the provider in tmp_path, and whose clusterctl prints its arguments."""
    lab = LabFolder(tmp_path / "labs" / "acme")
    lab.root.mkdir(parents=True)
    clusterctl = tmp_path / "the tools" / "clusterctl"
    clusterctl.parent.mkdir()
    clusterctl.write_text('#!/bin/sh\necho "clusterctl: $*"\n')
    clusterctl.chmod(0o755)
    tools = {"capi-v1.14": str(clusterctl.parent)}
    kubeconfig = str(lab.root / "kubeconfig")
    write_state(lab.state, LabState(0, "v1.14.2", "v1.14", "v1.36.0", kubeconfig, True, tools))
    write_state(lab.run_state, RunState(0, str(tmp_path), "v0.1.0", "running"))
    locks = [acquire(lab.lock), acquire(lab.run_lock)]
    yield lab
    for lock in locks:
        assert lock is not None
        os.close(lock)


def _execute(lab: LabFolder, folder: Path, script: str) -> int:
    provider = ImportableProvider(folder, {"name": "acme"}, "acme")
    command = ["sh", "-c", script]
    return execute(provider, lab, UpRequest("v1.14"), command, lambda text: None)


def test_a_command_finds_the_tools_of_the_lab(
    running: LabFolder,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    for name in ("kubectl", "clusterctl"):
        (other / name).write_text("#!/bin/sh\necho another\n")
        (other / name).chmod(0o755)
    monkeypatch.setenv("PATH", os.pathsep.join([str(other), os.defpath]))
    script = (
        "clusterctl describe 'a b' && kubectl kustomize --help && ls $(dirname $(which kubectl))"
    )

    # The second call finds the files of the first.
    codes = [_execute(running, tmp_path, f"{script}; exit 3") for _ in range(2)]

    assert codes == [3, 3]
    seen = capfd.readouterr().out
    config = running.repository / "clusterctl.yaml"
    assert f"clusterctl: --config={config} describe a b\n" in seen
    assert "kustomization" in seen
    assert "another" not in seen
    assert seen.endswith("clusterctl\nkubectl\n")


def test_a_command_may_run_a_command_in_the_lab(
    running: LabFolder,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert _execute(running, tmp_path, "true") == 0
    # As for a Python without kubectl beside it.
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", os.pathsep.join([str(running.commands), os.defpath]))

    assert _execute(running, tmp_path, "kubectl kustomize --help") == 0
    assert "kustomization" in capfd.readouterr().out
