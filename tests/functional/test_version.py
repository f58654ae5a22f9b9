"""The version of a provider: that of the tag, in its package and from its manager."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from capsmith_runtime.version import __version__
from tests.golden.cases import EXAMPLES, Case, generated
from tests.repositories import import_path

IDENTITY = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("version") / "acme"
    generated(Case("acme", EXAMPLES / "acme" / "provider.yaml"), folder)
    return folder


def _run(folder: Path, *command: str, **variables: str) -> str:
    environment = {**os.environ, "VERSION": "", **variables}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def _version(folder: Path, tag: str = "") -> str:
    return _run(folder, sys.executable, "-m", "hatchling", "version", VERSION=tag)


@pytest.mark.parametrize(
    ("tag", "expected"),
    [
        ("", "0.1.0.dev0"),
        ("dev", "0.1.0.dev0"),
        ("v0.1.7", "0.1.7"),
        ("v0.2.0-rc.1", "0.2.0rc1"),
        ("v0.2.0-some.thing", "0.2.0+some.thing"),
    ],
)
def test_a_build_has_the_version_of_its_argument(repository: Path, tag: str, expected: str) -> None:
    assert _version(repository, tag) == expected


def test_a_checkout_has_the_version_of_its_newest_tag(repository: Path) -> None:
    git = ("git", *IDENTITY)
    for command in (["init", "-q"], ["commit", "-qm", "a", "--allow-empty"], ["tag", "v0.1.3"]):
        _run(repository, *git, *command)
    assert _version(repository) == "0.1.3"
    _run(repository, *git, "commit", "-qm", "b", "--allow-empty")
    assert _version(repository).startswith("0.1.3+1.g")


def test_the_first_line_of_the_log_says_which_release_runs(repository: Path) -> None:
    command = (sys.executable, "-m", "cluster_api_provider_acme", "--kubeconfig=missing")
    environment = {**os.environ, "PYTHONPATH": import_path(repository)}
    done = subprocess.run(command, cwd=repository, env=environment, capture_output=True, text=True)
    assert done.returncode == 1
    first, *_ = done.stderr.splitlines()
    assert "INFO manager starting" in first
    assert f"runtime={__version__}" in first
    assert 'component=infrastructure provider=cluster-api-provider-acme version="(not' in first


def test_the_manager_prints_it(repository: Path) -> None:
    command = (sys.executable, "-m", "cluster_api_provider_acme", "--version")
    shown = _run(repository, *command, PYTHONPATH=import_path(repository))
    assert shown.startswith("cluster-api-provider-acme (not installed), capsmith_runtime 0.")
