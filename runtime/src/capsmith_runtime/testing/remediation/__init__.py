"""Scope builders for unit tests of kinds that implement Remediation; they need no API server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from capsmith_runtime.api.serialization import encode_status
from capsmith_runtime.infrastructure.api import InfraClusterView, InfraMachineView
from capsmith_runtime.kube.log import get_logger
from capsmith_runtime.reconcile.sessions import ScopeSession
from capsmith_runtime.remediation.api import RemediationDeleteScope, RemediationScope
from capsmith_runtime.testing.core import (
    NAMESPACE,
    core_cluster,
    core_machine,
    given_credentials,
    spec_from,
)
from capsmith_runtime.testing.infrastructure.builders import infra_cluster_view, infra_machine_view

__all__ = [
    "core_cluster",
    "core_machine",
    "infra_cluster_view",
    "infra_machine_view",
    "remediation",
    "remediation_deletion",
    "spec_from",
]


Spec = TypeVar("Spec")


def remediation(
    spec: Spec,
    name: str = "machine",
    *,
    infra_machine: InfraMachineView | None = None,
    infra_cluster: InfraClusterView | None = None,
    credentials: Mapping[str, str] | None = None,
    status: Any = None,
    session: object = None,
) -> RemediationScope[Spec]:
    """Create the scope to pass to ``reconcile_normal``.

    ``name`` is also the name of the Machine and, unless ``infra_machine`` is set, of its
    infrastructure machine. ``status`` is an instance of the generated Status class, as an earlier
    call returned it.
    """
    return RemediationScope(
        name=name,
        namespace=NAMESPACE,
        external_id=f"{name}.0002",
        logger=get_logger("test"),
        spec=spec,
        cluster=core_cluster(),
        machine=core_machine(name),
        infra_machine=infra_machine or infra_machine_view(name, provider_id=f"test://{name}"),
        infra_cluster=infra_cluster,
        credentials=given_credentials(credentials),
        _status=encode_status(status),
        _session=ScopeSession(session),
    )


def remediation_deletion(
    spec: Spec,
    name: str = "machine",
    *,
    infra_machine: InfraMachineView | None = None,
    infra_cluster: InfraClusterView | None = None,
    credentials: Mapping[str, str] | None = None,
    status: Any = None,
    session: object = None,
) -> RemediationDeleteScope[Spec]:
    """Create the scope for ``reconcile_delete`` of a remediation.

    The Machine no longer exists, unless ``infra_machine`` is set.
    """
    exists = infra_machine is not None
    return RemediationDeleteScope(
        name=name,
        namespace=NAMESPACE,
        external_id=f"{name}.0002",
        logger=get_logger("test"),
        _spec=spec,
        _credentials=given_credentials(credentials),
        _status=encode_status(status),
        _session=ScopeSession(session),
        cluster=core_cluster() if exists else None,
        machine=core_machine(name) if exists else None,
        infra_machine=infra_machine,
        infra_cluster=infra_cluster,
    )
