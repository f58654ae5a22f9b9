"""Labs in clusters that the lab has not started."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from capsmith.clusters.lab.errors import LabError
from capsmith.clusters.lab.folder import LabFolder
from capsmith.clusters.lab.real_cluster import copy_kubeconfig, delete_kind_cluster


def test_only_a_lab_of_kind_deletes_a_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    lab = LabFolder(tmp_path)
    delete_kind_cluster(lab)
    lab.kind.touch()
    with pytest.raises(LabError, match="kind delete failed"):
        delete_kind_cluster(lab)
    assert lab.kind.exists()


def test_a_kubeconfig_is_copied_for_its_owner_alone(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_text("current-context: x\n")
    copy_kubeconfig(source, target)
    assert target.read_text() == source.read_text()
    assert target.stat().st_mode & 0o777 == 0o600
    with pytest.raises(LabError, match="cannot be read") as caught:
        copy_kubeconfig(tmp_path / "missing", target)
    assert caught.value.finding.id == "lab-cluster"
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(LabError, match="not a regular file"):
        copy_kubeconfig(tmp_path / "pipe", target)
