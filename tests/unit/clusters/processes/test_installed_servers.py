"""Servers of Kubernetes that the user has installed are not built."""

from __future__ import annotations

from pathlib import Path

import pytest

from capsmith.clusters.processes.tools.installed import (
    InstalledServers,
    find_installed_clusterctl,
    find_installed_servers,
)

_SERVERS = ("etcd", "kube-apiserver")


def _install(folder: Path, version: str, *names: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        path = folder / name
        path.write_text(f"#!/bin/sh\necho Kubernetes {version}\n")
        path.chmod(0o755)
    return folder


def _find(tmp_path: Path, *, is_built: bool = False, **environment: str) -> InstalledServers:
    """Search as a user does who has no folder of setup-envtest but one below `tmp_path`."""
    variables = {"PATH": "", "XDG_DATA_HOME": str(tmp_path / "data"), **environment}
    return find_installed_servers(variables, is_built=is_built)


@pytest.fixture
def assets(tmp_path: Path) -> Path:
    return _install(tmp_path / "assets", "v1.34.1", *_SERVERS)


def test_the_folder_of_envtest_counts_also_when_others_are_built(
    tmp_path: Path, assets: Path
) -> None:
    found = _find(tmp_path, is_built=True, KUBEBUILDER_ASSETS=str(assets))
    assert found.paths == {name: assets / name for name in _SERVERS}
    assert found.describe() == [
        f"using etcd, kube-apiserver v1.34.1 of KUBEBUILDER_ASSETS ({assets})"
    ]


def test_path_counts_only_until_the_servers_are_built(tmp_path: Path, assets: Path) -> None:
    _install(assets, "v1.34.1", "kube-controller-manager")
    assert len(_find(tmp_path, PATH=f"{assets}:/bin").paths) == 3
    assert _find(tmp_path, PATH=f"{assets}:/bin", is_built=True) == InstalledServers()


def test_the_newest_release_of_setup_envtest_comes_before_path(
    tmp_path: Path, assets: Path
) -> None:
    kept = tmp_path / "data" / "kubebuilder-envtest" / "k8s"
    for version in ("1.9.1", "1.33.0", "1.35.2"):
        _install(kept / f"{version}-linux-amd64", f"v{version}", *_SERVERS)
    found = _find(tmp_path, PATH=f"{assets}:/bin")
    assert found.version == "v1.35.2"
    assert found.source == "the folder of setup-envtest"
    assert found.paths["etcd"].parent.name == "1.35.2-linux-amd64"


def test_controllers_of_another_release_are_ignored(tmp_path: Path, assets: Path) -> None:
    _install(assets, "v1.33.0", "kube-controller-manager")
    found = _find(tmp_path, PATH=f"{assets}:/bin")
    assert found.paths.keys() == set(_SERVERS)
    assert found.describe()[0] == f"not used: {assets}/kube-controller-manager is not v1.34.1"


@pytest.mark.parametrize(
    ("version", "reason"),
    [("v1.29.9", "v1.29.9"), ("unknown", "of an unknown release")],
)
def test_an_old_server_is_none(tmp_path: Path, version: str, reason: str) -> None:
    folder = _install(tmp_path / "old", version, *_SERVERS)
    found = _find(tmp_path, PATH=f"{folder}:/bin")
    assert found.paths == {}
    assert found.describe() == [
        f"not used: {folder}/kube-apiserver is {reason}, and 1.30 is the oldest supported"
    ]


def test_etcd_alone_is_none(tmp_path: Path) -> None:
    folder = _install(tmp_path / "half", "v1.34.1", "etcd")
    assert _find(tmp_path, PATH=f"{folder}:/bin").paths == {}
    found = _find(tmp_path, KUBEBUILDER_ASSETS=str(folder))
    assert found.ignored == (f"{folder} (KUBEBUILDER_ASSETS) has no kube-apiserver",)


def test_clusterctl_of_another_series_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = _install(tmp_path / "bin", "v1.14.3", "clusterctl")
    monkeypatch.setenv("PATH", f"{folder}:/bin")
    assert find_installed_clusterctl("v1.14") == folder / "clusterctl"
    assert find_installed_clusterctl("v1.1") is None
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_installed_clusterctl("v1.14") is None
