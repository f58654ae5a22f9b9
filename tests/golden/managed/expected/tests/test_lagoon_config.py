"""Unit tests of LagoonConfigReconciler; they need no API server."""

from __future__ import annotations

import json
from typing import Any

import yaml
from capsmith_runtime.bootstrap import LINUX_SENTINEL, BootstrapDocument
from capsmith_runtime.testing import bootstrap as testing

from cluster_api_provider_lagoon._generated.api.lagoon_config import LagoonConfigSpec
from cluster_api_provider_lagoon.controllers.lagoon_config import LagoonConfigReconciler

SPEC = testing.spec_from(LagoonConfigSpec, {})


def test_workers_join_at_the_endpoint_of_the_control_plane() -> None:
    config = testing.bootstrap_config(SPEC)
    settings = _settings(_document())

    assert settings["endpoint"] == f"{config.endpoint.host}:{config.endpoint.port}"
    assert settings["version"] == config.version


def test_workers_are_tainted_until_core_initialises_them() -> None:
    taints = _settings(_document())["taints"]

    assert taints == ["node.cluster.x-k8s.io/uninitialized:NoSchedule"]


def test_sentinel_file_is_created_last() -> None:
    ((_, _, script),) = _document()["runcmd"]

    assert script.index(" join --config ") < script.index(LINUX_SENTINEL)


def test_data_contain_no_private_key() -> None:
    keys = [pair.private_key or "" for pair in testing.CERTIFICATES.values()]

    assert [key for key in keys if key.strip() in _text()] == []


def _text() -> str:
    """Return the bootstrap data of a worker."""
    result = LagoonConfigReconciler().bootstrap_data(testing.bootstrap_config(SPEC))
    assert isinstance(result, BootstrapDocument)
    return result.value.decode()


def _document() -> dict[str, Any]:
    assert _text().startswith("#cloud-config\n")
    document: dict[str, Any] = yaml.safe_load(_text())
    return document


def _settings(document: dict[str, Any]) -> dict[str, Any]:
    (file,) = document["write_files"]
    settings: dict[str, Any] = json.loads(file["content"])
    return settings
