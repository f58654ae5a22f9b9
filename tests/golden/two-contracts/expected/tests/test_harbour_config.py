"""Your tests of HarbourConfig: no API server is needed."""

from __future__ import annotations

import json
from typing import Any

import yaml

from cluster_api_provider_harbour import BootstrapDocument
from cluster_api_provider_harbour._generated import bootstrap_testing, sentinel, testing
from cluster_api_provider_harbour._generated.api.harbour_config import HarbourConfigSpec
from cluster_api_provider_harbour.controllers.harbour_config import HarbourConfigReconciler

SPEC = testing.spec_from(HarbourConfigSpec, {})
SECRET_KEY = bootstrap_testing.CERTIFICATES["ca"].private_key


def test_the_first_machine_initialises_and_others_join() -> None:
    first = _files(is_control_plane=True, is_first=True)
    second = _files(is_control_plane=True)
    worker = _files()

    assert [_command(files).split()[1] for files in (first, second, worker)] == [
        "init",
        "join",
        "join",
    ]
    assert [_settings(files)["role"] for files in (first, second, worker)] == [
        "control-plane",
        "control-plane",
        "worker",
    ]


def test_only_control_planes_get_the_key() -> None:
    assert SECRET_KEY in _files(is_control_plane=True).values()
    assert SECRET_KEY not in _files().values()


def test_workers_are_tainted_until_core_knows_them() -> None:
    assert _settings(_files())["taints"] == ["node.cluster.x-k8s.io/uninitialized:NoSchedule"]
    assert _settings(_files(is_control_plane=True))["taints"] == []


def test_the_sentinel_comes_last() -> None:
    script = _files()["runcmd"]
    assert script.index(_command(_files())) < script.index(sentinel.LINUX_SENTINEL)


def test_data_of_a_pool_are_made_again() -> None:
    config = bootstrap_testing.pool_bootstrap_config(SPEC)
    answer = HarbourConfigReconciler().bootstrap_data(config)
    assert isinstance(answer, BootstrapDocument)
    assert answer.refresh_after is not None


def _files(*, is_control_plane: bool = False, is_first: bool = False) -> dict[str, str]:
    """What stands in the files of a machine, and its script."""
    config = bootstrap_testing.bootstrap_config(
        SPEC, is_control_plane=is_control_plane, is_first=is_first
    )
    answer = HarbourConfigReconciler().bootstrap_data(config)
    assert isinstance(answer, BootstrapDocument)
    assert answer.value.startswith(b"#cloud-config\n")
    document = yaml.safe_load(answer.value)
    found = {file["path"]: file["content"] for file in document["write_files"]}
    ((shell, option, script),) = document["runcmd"]
    return {**found, "runcmd": script}


def _settings(files: dict[str, str]) -> dict[str, Any]:
    (text,) = (text for path, text in files.items() if path.endswith(".json"))
    settings: dict[str, Any] = json.loads(text)
    return settings


def _command(files: dict[str, str]) -> str:
    return files["runcmd"].splitlines()[1]
