"""Unit tests of HarbourConfigReconciler; they need no API server."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
import yaml
from capsmith_runtime.bootstrap import LINUX_SENTINEL, BootstrapData, BootstrapDocument
from capsmith_runtime.testing import bootstrap as testing

from cluster_api_provider_harbour._generated.api.harbour_config import HarbourConfigSpec
from cluster_api_provider_harbour.controllers.harbour_config import HarbourConfigReconciler

SPEC = testing.spec_from(HarbourConfigSpec, {})
SECRET_KEY = testing.CERTIFICATES["ca"].private_key


def test_first_control_plane_machine_initialises_and_others_join() -> None:
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


def test_only_control_plane_machines_receive_the_key() -> None:
    assert SECRET_KEY in _files(is_control_plane=True).values()
    assert SECRET_KEY not in _files().values()


def test_only_workers_are_tainted_until_core_initialises_them() -> None:
    assert _settings(_files())["taints"] == ["node.cluster.x-k8s.io/uninitialized:NoSchedule"]
    assert _settings(_files(is_control_plane=True))["taints"] == []


def test_sentinel_file_is_created_last() -> None:
    script = _files()["runcmd"]
    assert script.index(_command(_files())) < script.index(LINUX_SENTINEL)


def test_machine_that_waits_gets_a_new_token_before_its_own_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reconciler = HarbourConfigReconciler()
    config = testing.bootstrap_config(SPEC)
    began = time.time()
    monkeypatch.setattr(time, "time", lambda: began)
    document = reconciler.bootstrap_data(config)
    for _ in range(2):
        assert isinstance(document, BootstrapDocument)
        assert document.refresh_after is not None
        began += document.refresh_after
        assert _token_end(document) > began
        former = _token_end(document)
        previous = BootstrapData(document.value, document.format)
        config = testing.bootstrap_config(SPEC, previous=previous)
        document = reconciler.refresh_data(config)
        assert isinstance(document, BootstrapDocument)
        assert _token_end(document) > former


def test_data_of_a_pool_are_refreshed() -> None:
    config = testing.pool_bootstrap_config(SPEC)
    result = HarbourConfigReconciler().bootstrap_data(config)
    assert isinstance(result, BootstrapDocument)
    assert result.refresh_after is not None


def _token_end(document: BootstrapDocument) -> float:
    files = yaml.safe_load(document.value)["write_files"]
    (settings,) = (each["content"] for each in files if each["path"].endswith(".json"))
    return float(json.loads(settings)["token"].rsplit(".", 2)[1])


def _files(*, is_control_plane: bool = False, is_first: bool = False) -> dict[str, str]:
    """Return the contents of a machine's files by path, and its script as ``runcmd``."""
    config = testing.bootstrap_config(SPEC, is_control_plane=is_control_plane, is_first=is_first)
    result = HarbourConfigReconciler().bootstrap_data(config)
    assert isinstance(result, BootstrapDocument)
    assert result.value.startswith(b"#cloud-config\n")
    document = yaml.safe_load(result.value)
    found = {file["path"]: file["content"] for file in document["write_files"]}
    ((shell, option, script),) = document["runcmd"]
    return {**found, "runcmd": script}


def _settings(files: dict[str, str]) -> dict[str, Any]:
    (text,) = (text for path, text in files.items() if path.endswith(".json"))
    settings: dict[str, Any] = json.loads(text)
    return settings


def _command(files: dict[str, str]) -> str:
    return files["runcmd"].splitlines()[1]
