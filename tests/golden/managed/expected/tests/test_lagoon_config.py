"""Your tests of LagoonConfig: no API server is needed."""

from __future__ import annotations

import json
from typing import Any

import yaml

from cluster_api_provider_lagoon import BootstrapDocument
from cluster_api_provider_lagoon._generated import bootstrap_testing, sentinel, testing
from cluster_api_provider_lagoon._generated.api.lagoon_config import LagoonConfigSpec
from cluster_api_provider_lagoon.controllers.lagoon_config import LagoonConfigReconciler

SPEC = testing.spec_from(LagoonConfigSpec, {})


def test_workers_join_where_the_control_plane_is() -> None:
    config = bootstrap_testing.bootstrap_config(SPEC)
    settings = _settings(_document())

    assert settings["endpoint"] == f"{config.endpoint.host}:{config.endpoint.port}"
    assert settings["version"] == config.version


def test_workers_are_tainted_until_core_knows_them() -> None:
    taints = _settings(_document())["taints"]

    assert taints == ["node.cluster.x-k8s.io/uninitialized:NoSchedule"]


def test_the_sentinel_comes_last() -> None:
    ((_, _, script),) = _document()["runcmd"]

    assert script.index(" join --config ") < script.index(sentinel.LINUX_SENTINEL)


def test_no_key_of_the_cluster_gets_onto_a_machine() -> None:
    keys = [pair.private_key or "" for pair in bootstrap_testing.CERTIFICATES.values()]

    assert [key for key in keys if key.strip() in _text()] == []


def _text() -> str:
    """What a worker runs."""
    answer = LagoonConfigReconciler().bootstrap_data(bootstrap_testing.bootstrap_config(SPEC))
    assert isinstance(answer, BootstrapDocument)
    return answer.value.decode()


def _document() -> dict[str, Any]:
    assert _text().startswith("#cloud-config\n")
    document: dict[str, Any] = yaml.safe_load(_text())
    return document


def _settings(document: dict[str, Any]) -> dict[str, Any]:
    (file,) = document["write_files"]
    settings: dict[str, Any] = json.loads(file["content"])
    return settings
