"""Servers of Kubernetes that the user has installed are not built."""

from __future__ import annotations

from pathlib import Path

import pytest

from capsmith.clusters.processes.tools.build import find_installed_servers


def _install(folder: Path, version: str, *names: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name in names:
        path = folder / name
        path.write_text(f"#!/bin/sh\necho Kubernetes {version}\n")
        path.chmod(0o755)
    return folder


@pytest.fixture
def assets(tmp_path: Path) -> Path:
    return _install(tmp_path / "assets", "v1.34.1", "etcd", "kube-apiserver")


def test_the_folder_of_envtest_counts_also_when_others_are_built(assets: Path) -> None:
    found = find_installed_servers({"KUBEBUILDER_ASSETS": str(assets), "PATH": ""}, is_built=True)
    assert found == {name: assets / name for name in ("etcd", "kube-apiserver")}


def test_path_counts_only_until_the_servers_are_built(assets: Path) -> None:
    _install(assets, "v1.34.1", "kube-controller-manager")
    environment = {"PATH": f"{assets}:/bin"}
    assert len(find_installed_servers(environment, is_built=False)) == 3
    assert find_installed_servers(environment, is_built=True) == {}


@pytest.mark.parametrize("version", ["v1.29.9", "unknown"])
def test_an_old_server_is_none(tmp_path: Path, version: str) -> None:
    folder = _install(tmp_path / "old", version, "etcd", "kube-apiserver")
    assert find_installed_servers({"PATH": f"{folder}:/bin"}, is_built=False) == {}


def test_etcd_alone_is_none(tmp_path: Path) -> None:
    folder = _install(tmp_path / "half", "v1.34.1", "etcd")
    assert find_installed_servers({"PATH": f"{folder}:/bin"}, is_built=False) == {}
