"""Scope builders for unit tests of control plane providers; they need no API server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, Final, TypeVar

from capsmith_runtime.contract.control_plane import ControlPlaneMachine
from capsmith_runtime.contract.model import Endpoint
from capsmith_runtime.controlplane.api import (
    ControlPlaneHealth,
    ControlPlaneMember,
    ControlPlaneScope,
)
from capsmith_runtime.controlplane.managed.api import (
    ManagedControlPlaneDeleteScope,
    ManagedControlPlaneScope,
)
from capsmith_runtime.kube.client import KubeClient
from capsmith_runtime.kube.log import get_logger
from capsmith_runtime.reconcile.results import NotAvailableError, Waiting
from capsmith_runtime.reconcile.sessions import ScopeSession
from capsmith_runtime.testing.core import NAMESPACE, core_cluster, given_credentials, spec_from

__all__ = [
    "ALL_HEALTHY",
    "ALL_WELL",
    "control_plane",
    "control_plane_member",
    "core_cluster",
    "machine",
    "managed_control_plane",
    "managed_control_plane_deletion",
    "spec_from",
]


Spec = TypeVar("Spec")

ALL_HEALTHY: Final = ControlPlaneHealth()
"""Default result of the hook ``health``."""
ALL_WELL: Final = ALL_HEALTHY
"""Deprecated capsmith 0.1 name for ``ALL_HEALTHY``, kept for existing tests."""


def machine(name: str = "machine", **changes: Any) -> ControlPlaneMachine:
    """Create a view of a Machine with a Node; ``changes`` replace its fields."""
    made = ControlPlaneMachine(
        name=name,
        namespace=NAMESPACE,
        uid=f"uid-of-{name}",
        created="2030-01-01T00:00:00Z",
        labels={},
        annotations={},
        deleted=None,
        version="v1.34.0",
        failure_domain=None,
        provider_id=f"simulated://{name}",
        node_name=name,
        addresses=(),
        infrastructure=None,
        bootstrap=None,
        certificates_expiry=None,
        conditions={},
    )
    return replace(made, **changes)


def control_plane(
    spec: Spec,
    name: str = "control-plane",
    *,
    machines: int = 1,
    initialized: bool = True,
    workload: Callable[[], Awaitable[KubeClient]] | None = None,
    session: object = None,
) -> ControlPlaneScope[Spec]:
    """Create the scope of a control plane; ``workload`` creates its workload client."""

    async def nowhere() -> KubeClient:
        raise NotAvailableError(Waiting("KubeconfigNotFound", "a test has no workload cluster"))

    return ControlPlaneScope(
        name=name,
        namespace=NAMESPACE,
        external_id=f"{name}.0001",
        logger=get_logger("test"),
        spec=spec,
        cluster=core_cluster(control_plane_initialized=initialized),
        version="v1.34.0",
        replicas=machines,
        machines=tuple(machine(f"{name}-{number}") for number in range(machines)),
        initialized=initialized,
        _workload=workload or nowhere,
        _session=ScopeSession(session),
    )


def control_plane_member(
    spec: Spec, *, machines: int = 1, session: object = None
) -> ControlPlaneMember[Spec]:
    """Create a control plane with one Machine, and return it as a member."""
    whole = control_plane(spec, machines=machines, session=session)
    return ControlPlaneMember(machine=whole.machines[0], control_plane=whole)


def managed_control_plane(
    spec: Spec,
    name: str = "control-plane",
    *,
    version: str = "v1.34.0",
    endpoint: Endpoint | None = None,
    initialized: bool = False,
    credentials: Mapping[str, str] | None = None,
    session: object = None,
    **cluster: Any,
) -> ManagedControlPlaneScope[Spec]:
    """Create the scope for ``reconcile_normal``; ``cluster`` replaces the Cluster's fields."""
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
        credentials=given_credentials(credentials),
        _session=ScopeSession(session),
    )


def managed_control_plane_deletion(
    spec: Spec,
    name: str = "control-plane",
    *,
    credentials: Mapping[str, str] | None = None,
    session: object = None,
) -> ManagedControlPlaneDeleteScope[Spec]:
    """Create the scope to pass to ``reconcile_delete`` once the Cluster has been deleted."""
    return ManagedControlPlaneDeleteScope(
        name=name,
        namespace=NAMESPACE,
        external_id=f"{name}.0001",
        logger=get_logger("test"),
        _spec=spec,
        cluster=None,
        control_plane_endpoint=None,
        _credentials=given_credentials(credentials),
        _session=ScopeSession(session),
    )
