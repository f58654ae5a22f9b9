"""The conditions of Machines that a remediation writes, in each version of core's API."""

from __future__ import annotations

from typing import Any

import pytest

from capsmith_runtime.contract.machine_conditions import (
    EXTERNALLY_REMEDIATED_CONDITION,
    build_machine_status,
    request_owner_remediation,
)
from capsmith_runtime.contract.model import Condition

NOW = "2030-01-01T00:00:00Z"
OTHER = {"type": "HealthCheckSucceeded", "status": "False", "reason": "NodeNotFound"}
FAILED = (
    Condition(type=EXTERNALLY_REMEDIATED_CONDITION, status=False, reason="NoPower"),
    request_owner_remediation("NoPower"),
)


def machine(version: str, status: dict[str, Any]) -> dict[str, Any]:
    meta = {"name": "m1", "namespace": "default", "generation": 3}
    api_version = f"cluster.x-k8s.io/{version}"
    return {"apiVersion": api_version, "kind": "Machine", "metadata": meta, "status": status}


def types(entries: list[dict[str, Any]]) -> list[str]:
    return [entry["type"] for entry in entries]


def test_core_from_v1_11_reads_one_list() -> None:
    status = {"conditions": [OTHER], "phase": "Running"}
    new = build_machine_status(machine("v1beta2", status), FAILED, (), NOW)
    assert new["phase"] == "Running"
    assert types(new["conditions"]) == [OTHER["type"], "ExternallyRemediated", "OwnerRemediated"]
    assert new["conditions"][-1]["observedGeneration"] == 3
    assert "v1beta2" not in new


def test_core_up_to_v1_10_acts_on_the_old_conditions() -> None:
    status = {"conditions": [OTHER], "v1beta2": {"conditions": [OTHER]}}
    new = build_machine_status(machine("v1beta1", status), FAILED, (), NOW)
    assert types(new["conditions"]) == [OTHER["type"], "OwnerRemediated"]
    assert new["conditions"][-1]["severity"] == "Warning"
    shown = new["v1beta2"]["conditions"]
    assert types(shown) == [OTHER["type"], "ExternallyRemediated", "OwnerRemediated"]


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_an_owner_that_has_begun_is_left_alone(version: str) -> None:
    begun = {"type": "OwnerRemediated", "status": "False", "reason": "RemediationDeferred"}
    status = {"conditions": [begun], "v1beta2": {"conditions": [begun]}}
    new = build_machine_status(machine(version, status), FAILED, (), NOW)
    assert new["conditions"][0] == begun


def test_an_owner_that_has_ended_is_asked_again() -> None:
    ended = {"type": "OwnerRemediated", "status": "True", "reason": "OwnerRemediated"}
    new = build_machine_status(machine("v1beta2", {"conditions": [ended]}), FAILED, (), NOW)
    assert new["conditions"][0]["status"] == "False"


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_a_condition_is_removed(version: str) -> None:
    gone = {"type": EXTERNALLY_REMEDIATED_CONDITION, "status": "True", "reason": "Done"}
    status = {"conditions": [gone, OTHER], "v1beta2": {"conditions": [gone, OTHER]}}
    absent = (EXTERNALLY_REMEDIATED_CONDITION,)
    new = build_machine_status(machine(version, status), (), absent, NOW)
    listed = new["v1beta2"]["conditions"] if version == "v1beta1" else new["conditions"]
    assert listed == [OTHER]
