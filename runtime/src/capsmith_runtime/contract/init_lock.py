"""The lock with which one machine at a time initialises a control plane (BC-12).

Name and content are those of the kubeadm bootstrap provider, so that two providers in one Cluster
exclude each other.
"""

from __future__ import annotations

import json
from typing import Any, Final

from capsmith_runtime.contract import metadata
from capsmith_runtime.contract.constants import CLUSTER_KIND, CLUSTER_NAME_LABEL, CORE_GROUP
from capsmith_runtime.contract.core import Cluster
from capsmith_runtime.contract.model import Object

_KEY: Final = "lock-information"


def name_of(cluster: Cluster) -> str:
    """Return the name of the ConfigMap."""
    return f"{cluster.name}-lock"


def manifest(cluster: Cluster, core_version: str, machine: str) -> dict[str, Any]:
    """Return the lock of a Cluster, which owns it, held by a Machine."""
    owner = {
        "apiVersion": f"{CORE_GROUP}/{core_version}",
        "kind": CLUSTER_KIND,
        "name": cluster.name,
        "uid": cluster.uid,
    }
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": name_of(cluster),
            "namespace": cluster.namespace,
            "labels": {CLUSTER_NAME_LABEL: cluster.name},
            "ownerReferences": [owner],
        },
        "data": data(machine),
    }


def data(machine: str) -> dict[str, str]:
    """Return the ``data`` of a lock that a Machine holds."""
    return {_KEY: json.dumps({"machineName": machine})}


def holder(config_map: Object) -> str | None:
    """Return the name of the Machine that holds the lock; None when the ConfigMap is no lock."""
    try:
        information = json.loads(metadata.text(config_map, "data", _KEY))
    except ValueError:
        return None
    return metadata.text(information, "machineName") or None
