"""``make deploy`` and ``make undeploy``: what they hand to kubectl, and what make refuses."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.golden.cases import EXAMPLES, Case, generated

KUBECTL = """#!/bin/sh
if [ "$1" = kustomize ]; then exec {real} "$@"; fi
echo "$@" >> {calls}/commands
cat >> {calls}/objects; echo --- >> {calls}/objects
"""


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("deploy") / "complete"
    generated(Case("complete", EXAMPLES / "complete" / "provider.yaml"), folder)
    return folder


@pytest.fixture
def kubectl(tmp_path: Path) -> Path:
    """Return a kubectl that records all commands except `kustomize`, which it runs."""
    real = Path(sys.executable).parent / "kubectl"
    client = tmp_path / "kubectl"
    client.write_text(KUBECTL.format(real=real, calls=tmp_path), encoding="utf-8")
    client.chmod(0o755)
    return client


def make(repository: Path, kubectl: Path, *arguments: str, **variables: str) -> tuple[int, str]:
    command = ["make", *arguments, f"PYTHON={sys.executable}", f"KUBECTL={kubectl}"]
    environment = {**os.environ, **variables}
    done = subprocess.run(command, cwd=repository, env=environment, capture_output=True, text=True)
    return done.returncode, done.stderr


def objects(kubectl: Path) -> list[dict[str, Any]]:
    text = (kubectl.parent / "objects").read_text(encoding="utf-8")
    return [each for each in yaml.safe_load_all(text) if each]


def commands(kubectl: Path) -> list[str]:
    return (kubectl.parent / "commands").read_text(encoding="utf-8").splitlines()


def test_deploy_applies_all_managers_with_their_variables(repository: Path, kubectl: Path) -> None:
    code, message = make(repository, kubectl, "deploy", "IMAGE=registry/x", SKIFF_CONCURRENCY="7")

    assert code == 0, message
    managers = [each for each in objects(kubectl) if each["kind"] == "Deployment"]
    assert len(managers) == len(commands(kubectl)) == 4
    assert {*commands(kubectl)} == {"apply --server-side --filename -"}
    for manager in managers:
        (container,) = manager["spec"]["template"]["spec"]["containers"]
        assert container["image"] == "registry/x:dev"
        assert "--concurrency=7" in container["args"]
        assert "--hook-threads=32" in container["args"]
        assert not any("$" in argument for argument in container["args"])


def test_undeploy_keeps_what_holds_objects(repository: Path, kubectl: Path) -> None:
    assert make(repository, kubectl, "undeploy", "VERSION=v0.1.0") == (0, "")

    kinds = {each["kind"] for each in objects(kubectl)}
    assert {"Deployment", "ClusterRole", "ServiceAccount"} <= kinds
    assert not kinds & {"CustomResourceDefinition", "Namespace"}
    assert {*commands(kubectl)} == {"delete --ignore-not-found --filename -"}


def test_crds_are_deleted_by_their_own_target_only(repository: Path, kubectl: Path) -> None:
    code, message = make(repository, kubectl, "uninstall")

    assert code != 0
    assert "make uninstall-crds" in message
    assert not (kubectl.parent / "commands").exists()
    assert make(repository, kubectl, "uninstall-crds")[0] == 0
    assert commands(kubectl) == [
        f"delete --ignore-not-found --kustomize {folder}config/crd"
        for folder in ("ipam/", "control-plane/", "bootstrap/", "")
    ]


@pytest.mark.parametrize(
    ("variable", "tag", "expected"),
    [("EXAMPLE_ZONE", "dev", "EXAMPLE_ZONE is not set"), ("", "a b", "no tag of an image")],
)
def test_what_kubectl_could_not_run_is_refused(
    repository: Path, kubectl: Path, tmp_path: Path, variable: str, tag: str, expected: str
) -> None:
    copy = tmp_path / "repository"
    shutil.copytree(repository, copy)
    if variable:
        overlay = copy / "config" / "overlay" / "kustomization.yaml"
        text = overlay.read_text(encoding="utf-8")
        note = f"commonAnnotations: {{example.com/zone: '${{{variable}}}'}}\n"
        overlay.write_text(text + note, encoding="utf-8")

    code, message = make(copy, kubectl, "deploy", f"VERSION={tag}")

    assert code != 0
    assert expected in message
    assert not (kubectl.parent / "commands").exists()
