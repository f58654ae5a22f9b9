"""Builders for unit tests: managed control planes, without any API server."""

from __future__ import annotations

from typing import Any, TypeVar

from capsmith_runtime.contract.model import Endpoint
from capsmith_runtime.controlplane.managed.api import (
    ManagedControlPlaneDeleteScope,
    ManagedControlPlaneScope,
)
from capsmith_runtime.kube.log import get_logger
from capsmith_runtime.reconcile.sessions import ScopeSession
from capsmith_runtime.testing.core import NAMESPACE, core_cluster

Spec = TypeVar("Spec")


def managed_control_plane(
    spec: Spec,
    name: str = "control-plane",
    *,
    version: str = "v1.34.0",
    endpoint: Endpoint | None = None,
    initialized: bool = False,
    session: object = None,
    **cluster: Any,
) -> ManagedControlPlaneScope[Spec]:
    """Return the argument of ``reconcile_normal``; ``cluster`` has fields of the Cluster."""
    return ManagedControlPlaneScope(
        name=name,
        namespace=NAMESPACE,
        external_id=f"{name}.0001",
        logger=get_logger("test"),
        spec=spec,
        cluster=core_cluster(**cluster),
        version=version,
        control_plane_endpoint=endpoint,
        initialized=initialized,
        _session=ScopeSession(session),
    )


def managed_control_plane_deletion(
    spec: Spec, name: str = "control-plane", *, session: object = None
) -> ManagedControlPlaneDeleteScope[Spec]:
    """Return the argument of ``reconcile_delete``, as after the deletion of the Cluster."""
    return ManagedControlPlaneDeleteScope(
        name=name,
        namespace=NAMESPACE,
        external_id=f"{name}.0001",
        logger=get_logger("test"),
        _spec=spec,
        cluster=None,
        control_plane_endpoint=None,
        _session=ScopeSession(session),
    )
