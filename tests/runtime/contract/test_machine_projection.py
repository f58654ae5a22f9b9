"""What is kept of a Machine is what is read of it, and little else."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from capsmith_runtime.contract.control_plane_shapes import CORE_MACHINES
from capsmith_runtime.contract.core import CoreReader
from capsmith_runtime.contract.machine_pool import owning_machine_pool, read_pool_machine
from capsmith_runtime.contract.v1beta1 import CoreV1Beta1
from capsmith_runtime.contract.v1beta2 import CoreV1Beta2
from capsmith_runtime.reconcile.caches import project_machine

READERS = (CoreV1Beta1(), CoreV1Beta2())


def _condition(name: str, status: str = "True") -> dict[str, Any]:
    times = {"lastTransitionTime": "2026-01-02T03:04:05Z", "observedGeneration": 3}
    return {"type": name, "status": status, "reason": name, "message": "", **times}


def _machine(owner: str, *, control_plane: bool = False) -> dict[str, Any]:
    """A Machine as it is in a running cluster."""
    labels = {"cluster.x-k8s.io/cluster-name": "prod", "team": "x"}
    if control_plane:
        labels["cluster.x-k8s.io/control-plane"] = ""
    reference = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": owner, "name": "o", "uid": "u"}
    types = ("Available", "Ready", "UpToDate", "InfrastructureReady", "NodeHealthy", "Deleting")
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Machine",
        "metadata": {
            "name": "prod-1",
            "namespace": "default",
            "uid": "0b0b0b0b-aaaa-bbbb-cccc-000000000001",
            "resourceVersion": "100001",
            "labels": labels,
            "annotations": {"cluster.x-k8s.io/delete-machine": "yes"},
            "finalizers": ["machine.cluster.x-k8s.io"],
            "ownerReferences": [reference],
            "deletionTimestamp": "2026-01-02T03:04:05Z",
        },
        "spec": {
            "clusterName": "prod",
            "version": "v1.34.1",
            "providerID": "acme://1",
            "failureDomain": "z1",
            "bootstrap": {"dataSecretName": "prod-1", "configRef": {"kind": "C", "name": "prod-1"}},
            "infrastructureRef": {"apiGroup": "i.example.com", "kind": "M", "name": "prod-1"},
            "deletion": {"nodeDeletionTimeoutSeconds": 10},
        },
        "status": {
            "nodeRef": {"name": "prod-1"},
            "phase": "Running",
            "nodeInfo": {"kubeletVersion": "v1.34.1", "osImage": "x" * 30, "bootID": "b" * 36},
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}] * 4,
            "conditions": [
                *(_condition(name) for name in types),
                _condition("OwnerRemediated", "False"),
            ],
            "deprecated": {"v1beta1": {"conditions": [_condition(name) for name in types]}},
        },
    }


@pytest.mark.parametrize("owner", ["MachineSet", "MachinePool"])
@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.version)
def test_views_of_a_worker_stay_the_same(owner: str, reader: CoreReader) -> None:
    machine = _machine(owner)
    projected = project_machine(copy.deepcopy(machine))
    assert reader.read_machine(projected) == reader.read_machine(machine)
    assert reader.read_machine(projected).phase == "Running"
    assert read_pool_machine(projected) == read_pool_machine(machine)
    assert read_pool_machine(projected).unhealthy
    assert owning_machine_pool(projected) == owning_machine_pool(machine)
    assert projected["metadata"] == machine["metadata"]


@pytest.mark.parametrize("owner", ["MachineSet", "MachinePool"])
def test_little_of_a_worker_is_kept(owner: str) -> None:
    machine = _machine(owner)
    projected = project_machine(copy.deepcopy(machine))
    assert set(projected["status"]) == {"nodeRef", "phase", "conditions"}
    assert [each["type"] for each in projected["status"]["conditions"]] == ["OwnerRemediated"]
    assert len(json.dumps(projected)) < 0.45 * len(json.dumps(machine))


@pytest.mark.parametrize(
    "machine",
    [_machine("AcmeControlPlane"), _machine("MachineSet", control_plane=True)],
    ids=["owner", "label"],
)
def test_machines_of_a_control_plane_are_kept_as_they_are(machine: dict[str, Any]) -> None:
    """Their conditions are written as a whole, so none of them may be missing."""
    assert project_machine(copy.deepcopy(machine)) == machine
    for core in CORE_MACHINES.values():
        assert core.read(project_machine(copy.deepcopy(machine))) == core.read(machine)


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.version)
def test_a_worker_without_anything_can_be_read(reader: CoreReader) -> None:
    machine = _machine("MachineSet")
    machine["spec"], machine["status"] = {"clusterName": "c", "bootstrap": {}}, {}
    assert reader.read_machine(project_machine(copy.deepcopy(machine))) == reader.read_machine(
        machine
    )


@pytest.mark.parametrize("conditions", [None, 1, "x", [None, 1, "x", [], {}, {"type": 1}]])
def test_a_status_of_any_shape_is_projected(conditions: Any) -> None:
    """An exception would end the manager, whatever the schema of a core release allows."""
    machine = {**_machine("MachineSet"), "status": {"conditions": conditions}}

    assert project_machine(machine)["status"] == {}
