"""Scope builders for clusters and machines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from capsmith_runtime.api.serialization import encode_status
from capsmith_runtime.contract.model import Address, Endpoint
from capsmith_runtime.infrastructure.api import (
    ClaimedAddress,
    InfraClusterDeleteScope,
    InfraClusterScope,
    InfraClusterView,
    InfraMachineDeleteScope,
    InfraMachineScope,
    InfraMachineTemplateScope,
    InfraMachineView,
)
from capsmith_runtime.kube.log import get_logger
from capsmith_runtime.reconcile.scopes import BootstrapData
from capsmith_runtime.reconcile.sessions import ScopeSession
from capsmith_runtime.testing.core import NAMESPACE, core_cluster, core_machine, given_credentials

Spec = TypeVar("Spec")


def infra_cluster(
    spec: Spec,
    name: str = "cluster",
    *,
    endpoint: Endpoint | None = None,
    machines: Sequence[InfraMachineView] = (),
    credentials: Mapping[str, str] | None = None,
    status: Any = None,
    session: object = None,
) -> InfraClusterScope[Spec]:
    """Create the scope to pass to a cluster's ``reconcile_normal``.

    ``status`` is an instance of the generated Status class, as an earlier call returned it.
    """
    return InfraClusterScope(
        name=name,
        namespace=NAMESPACE,
        external_id=f"{name}.0001",
        logger=get_logger("test"),
        spec=spec,
        cluster=core_cluster(name),
        control_plane_endpoint=endpoint,
        machines=tuple(machines),
        credentials=given_credentials(credentials),
        _status=encode_status(status),
        _session=ScopeSession(session),
    )


def infra_cluster_deletion(
    spec: Spec,
    name: str = "cluster",
    *,
    credentials: Mapping[str, str] | None = None,
    session: object = None,
) -> InfraClusterDeleteScope[Spec]:
    """Create the scope for ``reconcile_delete`` of a cluster whose Cluster no longer exists."""
    return InfraClusterDeleteScope(
        name=name,
        namespace=NAMESPACE,
        external_id=f"{name}.0001",
        logger=get_logger("test"),
        _spec=spec,
        _credentials=given_credentials(credentials),
        cluster=None,
        control_plane_endpoint=None,
        _session=ScopeSession(session),
    )


def infra_cluster_view(
    fields: Mapping[str, Any],
    name: str = "cluster",
    *,
    endpoint: Endpoint | None = None,
    status: Any = None,
) -> InfraClusterView:
    """Create a view of a cluster, as its machines receive it.

    ``fields`` are the fields under ``spec``; ``status`` is an instance of the generated Status
    class, as the cluster's reconciler returned it.
    """
    return InfraClusterView(
        name=name,
        namespace=NAMESPACE,
        external_id=f"{name}.0001",
        control_plane_endpoint=endpoint,
        raw_spec=fields,
        raw_status=encode_status(status),
    )


def infra_machine_view(
    name: str = "machine",
    *,
    provider_id: str | None = None,
    addresses: Sequence[Address] = (),
    is_control_plane: bool = False,
    deleting: bool = False,
    status: Any = None,
) -> InfraMachineView:
    """Create a view of a machine, as its cluster receives it; see ``watched_machines``.

    A machine with a provider id is provisioned.  ``status`` is an instance of the generated Status
    class, as the machine's reconciler returned it.
    """
    return InfraMachineView(
        name=name,
        namespace=NAMESPACE,
        external_id=f"{name}.0001",
        provider_id=provider_id,
        is_provisioned=provider_id is not None,
        addresses=tuple(addresses),
        is_control_plane=is_control_plane,
        deleting=deleting,
        raw_status=encode_status(status),
    )


def infra_machine(
    spec: Spec,
    name: str = "machine",
    *,
    bootstrap: bytes = b"#cloud-config\n",
    provider_id: str | None = None,
    is_provisioned: bool | None = None,
    failure_domain: str | None = None,
    is_control_plane: bool = False,
    credentials: Mapping[str, str] | None = None,
    infra_cluster: InfraClusterView | None = None,
    ip_addresses: tuple[ClaimedAddress, ...] = (),
    status: Any = None,
    session: object = None,
) -> InfraMachineScope[Spec]:
    """Create the scope to pass to a machine's ``reconcile_normal``.

    If ``is_provisioned`` is None, a machine counts as provisioned if it has a provider id.
    ``status`` is an instance of the generated Status class, as an earlier call returned it.
    """

    async def read_bootstrap() -> BootstrapData:
        return BootstrapData(bootstrap, "cloud-config")

    return InfraMachineScope(
        name=name,
        namespace=NAMESPACE,
        external_id=f"{name}.0001",
        logger=get_logger("test"),
        spec=spec,
        cluster=core_cluster(),
        machine=core_machine(name, is_control_plane=is_control_plane),
        infra_cluster=infra_cluster,
        provider_id=provider_id,
        failure_domain=failure_domain,
        is_control_plane=is_control_plane,
        credentials=given_credentials(credentials),
        is_provisioned=provider_id is not None if is_provisioned is None else is_provisioned,
        _status=encode_status(status),
        ip_addresses=ip_addresses,
        _bootstrap=read_bootstrap,
        _session=ScopeSession(session),
    )


def infra_machine_deletion(
    spec: Spec,
    name: str = "machine",
    *,
    provider_id: str | None = None,
    credentials: Mapping[str, str] | None = None,
    infra_cluster: InfraClusterView | None = None,
    status: Any = None,
    session: object = None,
    deletion_seconds: float = 0.0,
) -> InfraMachineDeleteScope[Spec]:
    """Create the scope for ``reconcile_delete`` of a machine whose Machine no longer exists."""
    return InfraMachineDeleteScope(
        name=name,
        namespace=NAMESPACE,
        external_id=f"{name}.0001",
        logger=get_logger("test"),
        _spec=spec,
        _credentials=given_credentials(credentials),
        _status=encode_status(status),
        cluster=None,
        machine=None,
        infra_cluster=infra_cluster,
        provider_id=provider_id,
        is_control_plane=False,
        _session=ScopeSession(session),
        deletion_seconds=deletion_seconds,
    )


def infra_machine_template(
    spec: Spec,
    name: str = "template",
    *,
    credentials: Mapping[str, str] | None = None,
    infra_cluster: InfraClusterView | None = None,
    session: object = None,
) -> InfraMachineTemplateScope[Spec]:
    """Create the scope to pass to ``capacity`` for a machine template with this spec."""
    return InfraMachineTemplateScope(
        name=name,
        namespace=NAMESPACE,
        external_id=f"{name}.0001",
        logger=get_logger("test"),
        spec=spec,
        cluster=core_cluster(),
        infra_cluster=infra_cluster,
        _credentials=given_credentials(credentials),
        _session=ScopeSession(session),
    )
