"""Scope builders for machine pools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from capsmith_runtime.api.serialization import encode_status
from capsmith_runtime.infrastructure.api import InfraClusterView
from capsmith_runtime.infrastructure.machine_pool_api import (
    InfraMachinePoolDeleteScope,
    InfraMachinePoolScope,
)
from capsmith_runtime.kube.log import get_logger
from capsmith_runtime.reconcile.scopes import BootstrapData
from capsmith_runtime.reconcile.sessions import ScopeSession
from capsmith_runtime.testing.core import NAMESPACE, core_cluster, given_credentials
from capsmith_runtime.testing.core_machine_pool import VERSION, core_machine_pool

Spec = TypeVar("Spec")


def infra_machine_pool(
    spec: Spec,
    name: str = "pool",
    *,
    replicas: int = 1,
    replicas_managed_elsewhere: bool = False,
    version: str | None = VERSION,
    bootstrap: bytes = b"#cloud-config\n",
    credentials: Mapping[str, str] | None = None,
    infra_cluster: InfraClusterView | None = None,
    status: Any = None,
    session: object = None,
) -> InfraMachinePoolScope[Spec]:
    """Create the scope to pass to a machine pool's ``reconcile_normal`` or ``replicas``."""

    async def read_bootstrap() -> BootstrapData:
        return BootstrapData(bootstrap, "cloud-config")

    pool = core_machine_pool(
        name,
        replicas=replicas,
        replicas_managed_elsewhere=replicas_managed_elsewhere,
        version=version,
    )
    return InfraMachinePoolScope(
        name=name,
        namespace=NAMESPACE,
        external_id=f"{name}.0001",
        logger=get_logger("test"),
        spec=spec,
        cluster=core_cluster(),
        machine_pool=pool,
        infra_cluster=infra_cluster,
        provider_ids=(),
        credentials=given_credentials(credentials),
        _status=encode_status(status),
        _bootstrap=read_bootstrap,
        _session=ScopeSession(session),
    )


def infra_machine_pool_deletion(
    spec: Spec,
    name: str = "pool",
    *,
    credentials: Mapping[str, str] | None = None,
    session: object = None,
) -> InfraMachinePoolDeleteScope[Spec]:
    """Create the scope for ``reconcile_delete`` of a pool whose MachinePool no longer exists."""
    return InfraMachinePoolDeleteScope(
        name=name,
        namespace=NAMESPACE,
        external_id=f"{name}.0001",
        logger=get_logger("test"),
        _spec=spec,
        _credentials=given_credentials(credentials),
        cluster=None,
        machine_pool=None,
        infra_cluster=None,
        provider_ids=(),
        _session=ScopeSession(session),
    )
