"""Scope builders for unit tests of kinds that implement Resource; they need no API server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from capsmith_runtime.api.serialization import encode_status
from capsmith_runtime.contract.core import Cluster
from capsmith_runtime.infrastructure.api import InfraClusterView
from capsmith_runtime.kube.log import get_logger
from capsmith_runtime.reconcile.sessions import ScopeSession
from capsmith_runtime.resource.api import Owner, ResourceDeleteScope, ResourceScope
from capsmith_runtime.testing.core import NAMESPACE, core_cluster, given_credentials, spec_from

__all__ = [
    "core_cluster",
    "resource",
    "resource_deletion",
    "spec_from",
]


Spec = TypeVar("Spec")


def resource(
    spec: Spec,
    name: str = "resource",
    *,
    namespace: str = NAMESPACE,
    cluster: Cluster | None = None,
    owners: tuple[Owner, ...] = (),
    credentials: Mapping[str, str] | None = None,
    infra_cluster: InfraClusterView | None = None,
    status: Any = None,
    session: object = None,
) -> ResourceScope[Spec]:
    """Create the scope to pass to ``reconcile_normal``.

    ``namespace`` is empty for a cluster-scoped resource; ``status`` is an instance of the generated
    Status class, as an earlier call returned it.
    """
    return ResourceScope(
        name=name,
        namespace=namespace,
        external_id=f"{name}.0001",
        logger=get_logger("test"),
        spec=spec,
        cluster=cluster,
        owners=owners,
        credentials=given_credentials(credentials),
        infra_cluster=infra_cluster,
        _status=encode_status(status),
        _session=ScopeSession(session),
    )


def resource_deletion(
    spec: Spec,
    name: str = "resource",
    *,
    namespace: str = NAMESPACE,
    credentials: Mapping[str, str] | None = None,
    infra_cluster: InfraClusterView | None = None,
    status: Any = None,
    session: object = None,
) -> ResourceDeleteScope[Spec]:
    """Create the scope for ``reconcile_delete`` of a resource whose owners no longer exist."""
    return ResourceDeleteScope(
        name=name,
        namespace=namespace,
        external_id=f"{name}.0001",
        logger=get_logger("test"),
        _spec=spec,
        _credentials=given_credentials(credentials),
        _status=encode_status(status),
        _session=ScopeSession(session),
        cluster=None,
        owners=(),
        infra_cluster=infra_cluster,
    )
