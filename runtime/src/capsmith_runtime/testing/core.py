"""Builders for Cluster API objects that scopes of all provider types refer to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from capsmith_runtime.api.serialization import decode
from capsmith_runtime.contract.core import Cluster, Machine
from capsmith_runtime.reconcile.sessions import Credentials

Spec = TypeVar("Spec")
NAMESPACE = "default"


def spec_from(cls: type[Spec], data: Mapping[str, Any]) -> Spec:
    """Create a typed spec from ``data``, the JSON fields under ``spec`` in an object."""
    return decode(cls, data, "spec")


def core_cluster(name: str = "cluster", **changes: Any) -> Cluster:
    """Create a view of a Cluster; ``changes`` replace its fields."""
    cluster = Cluster(
        name=name,
        namespace=NAMESPACE,
        uid=f"uid-of-{name}",
        labels={},
        annotations={},
        deleting=False,
        paused=False,
        infrastructure_provisioned=True,
        control_plane_initialized=False,
        control_plane_endpoint=None,
        infrastructure=None,
        pod_cidrs=(),
        service_cidrs=(),
        api_server_port=None,
    )
    return replace(cluster, **changes)


def core_machine(name: str = "machine", **changes: Any) -> Machine:
    """Create a view of a Machine; ``changes`` replace its fields."""
    machine = Machine(
        name=name,
        namespace=NAMESPACE,
        uid=f"uid-of-{name}",
        labels={},
        annotations={},
        deleting=False,
        cluster_name="cluster",
        version="v1.34.0",
        failure_domain=None,
        data_secret_name=f"{name}-bootstrap",
        pool_name=None,
        is_control_plane=False,
        infrastructure=None,
    )
    return replace(machine, **changes)


def given_credentials(given: Mapping[str, str] | None) -> Credentials:
    """Return ``given`` as Credentials, which have no keys if ``given`` is None.

    An instance of Credentials is returned unchanged.
    """
    return given if isinstance(given, Credentials) else Credentials(given)
