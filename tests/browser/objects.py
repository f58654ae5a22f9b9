"""Objects of a Cluster API management cluster, for tests of the page."""

from __future__ import annotations

import json
import logging
from datetime import datetime, timedelta
from typing import Any

from capsmith_runtime.kube.log import TextFormatter

JSON = dict[str, Any]
CORE = "cluster.x-k8s.io/v1beta2"
ACME = "infrastructure.cluster.x-k8s.io/v1alpha1"
CREATED = "2026-11-26T08:00:00Z"
DEMO = {"cluster.x-k8s.io/cluster-name": "demo"}


def make(
    kind: str,
    name: str,
    *,
    owner: JSON | None = None,
    version: str = CORE,
    spec: JSON | None = None,
    status: JSON | None = None,
    labels: JSON | None = None,
    **metadata: Any,
) -> JSON:
    """Return an object in the namespace default, owned by ``owner``."""
    owners = [_reference(owner)] if owner else []
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{kind}-{name}",
            "creationTimestamp": CREATED,
            "labels": labels or {},
            "ownerReferences": owners,
            **metadata,
        },
        "spec": spec or {},
        "status": status or {},
    }


def condition(type: str, status: str, message: str = "", reason: str = "Waiting") -> JSON:
    """Return a condition."""
    return {
        "type": type,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": CREATED,
    }


def make_cluster() -> list[JSON]:
    """Return a Cluster with its infrastructure and a deployment, without Machines."""
    cluster = make(
        "Cluster",
        "demo",
        spec={
            "infrastructureRef": {
                "apiGroup": ACME.partition("/")[0],
                "kind": "AcmeCluster",
                "name": "demo",
            }
        },
        status={"phase": "Provisioned"},
    )
    infrastructure = make(
        "AcmeCluster",
        "demo",
        owner=cluster,
        version=ACME,
        status={"initialization": {"provisioned": True}},
    )
    deployment = make(
        "MachineDeployment",
        "demo-md-0",
        owner=cluster,
        labels=DEMO,
        spec={"replicas": 2},
        status={"readyReplicas": 0},
    )
    machines = make("MachineSet", "demo-md-0-abc", owner=deployment, labels=DEMO)
    return [cluster, infrastructure, deployment, machines]


def make_machine(name: str, *, phase: str = "Running", message: str = "") -> list[JSON]:
    """Return a Machine of the deployment and its infrastructure."""
    owner = make("MachineSet", "demo-md-0-abc")
    conditions = [condition("InfrastructureReady", "False", message)] if message else []
    machine = make(
        "Machine",
        name,
        owner=owner,
        labels=DEMO,
        spec={
            "infrastructureRef": {
                "apiGroup": ACME.partition("/")[0],
                "kind": "AcmeMachine",
                "name": name,
            }
        },
        status={"phase": phase, "conditions": conditions},
    )
    infrastructure = make(
        "AcmeMachine",
        name,
        owner=machine,
        version=ACME,
        spec={"providerID": f"acme://{name}"},
        status={"initialization": {"provisioned": phase == "Running"}, "conditions": conditions},
    )
    return [machine, infrastructure]


def make_event(obj: JSON, name: str, message: str) -> JSON:
    """Return a Kubernetes event of an object."""
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": "default"},
        "involvedObject": {
            "apiVersion": obj["apiVersion"],
            "kind": obj["kind"],
            "namespace": obj["metadata"]["namespace"],
            "name": obj["metadata"]["name"],
            "uid": obj["metadata"]["uid"],
        },
        "type": "Warning",
        "reason": "Failed",
        "message": message,
        "source": {"component": "acme"},
        "lastTimestamp": f"2026-11-26T08:00:{len(name) % 60:02d}Z",
    }


def copy(obj: JSON) -> JSON:
    """Return a copy that can be changed."""
    found: JSON = json.loads(json.dumps(obj))
    return found


def _reference(owner: JSON) -> JSON:
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
    }


def write_record(second: float, level: str, logger: str, text: str, **values: object) -> str:
    """Return a line as a manager logs it, some seconds after the objects were created."""
    time = datetime.fromisoformat(CREATED) + timedelta(seconds=second)
    record = logging.LogRecord(logger, getattr(logging, level), "", 0, text, None, None)
    record.created, record.msecs, record.values = time.timestamp(), time.microsecond / 1000, values
    return TextFormatter().format(record)
