"""Newer releases are found by the tags of a repository, which git lists."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from capsmith.contract.compatibility import Compatibility, Project, Supported
from capsmith.contract.model import ReleaseTesting
from tests.releases.__main__ import main
from tests.releases.newer import find_newer


def project(*releases: tuple[str, ReleaseTesting]) -> Project:
    return Project(tuple(Supported(release, run, False, "") for release, run in releases))


TABLE = Compatibility(
    core=project(
        ("v1.13.6", ReleaseTesting.SHORT),
        ("v1.14.2", ReleaseTesting.CI),
        ("v1.15", ReleaseTesting.SOURCE),
    ),
    kubernetes=project(("v1.36.4", ReleaseTesting.CI)),
    cert_manager=project(("v1.21.1", ReleaseTesting.SOURCE)),
    python=project(("3.13", ReleaseTesting.CI), ("3.14", ReleaseTesting.NIGHTLY)),
)


def repository(folder: Path, *tags: str) -> dict[str, str]:
    def git(*arguments: str) -> None:
        identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
        subprocess.run(["git", "-C", folder, *identity, *arguments], check=True)

    folder.mkdir()
    git("init", "--quiet")
    git("commit", "--quiet", "--allow-empty", "--message", "x")
    for tag in tags:
        git("tag", tag)
    return {"core": folder.as_uri()}


@pytest.mark.parametrize(
    ("name", "tags", "lines"),
    [
        ("core", ["v1.14.2", "v1.13.6", "v1.12.9", "api/v1.16.0", "v1.15.0-rc.0"], []),
        ("core", ["v1.14.3", "v1.14.10"], ["core: v1.14.10 after v1.14.2"]),
        ("core", ["v1.15.0"], ["core: v1.15.0 is released; v1.15 is read from source"]),
        ("core", ["v1.16.1"], ["core: v1.16.1 is a new series"]),
        ("cert_manager", ["v1.21.4", "v1.22.0"], ["cert_manager: v1.22.0 is a new series"]),
        ("python", ["v3.14.9", "v3.12.1"], []),
        ("python", ["v3.15.0"], ["python: v3.15.0 is a new series"]),
    ],
)
def test_newer_releases_are_found(
    tmp_path: Path, name: str, tags: list[str], lines: list[str]
) -> None:
    (address,) = repository(tmp_path / "origin", *tags).values()
    assert [*find_newer(TABLE, {name: address})] == lines


def test_matrices_are_outputs_of_a_workflow(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["matrix", "kubernetes"]) == 0
    assert capsys.readouterr().out == 'kubernetes=["v1.34", "v1.36", "v1.37"]\n'
    assert main(["matrix", "etcd"]) == 2
