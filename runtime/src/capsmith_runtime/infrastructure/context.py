"""Dependencies that all controllers of an infrastructure provider share."""

from __future__ import annotations

from dataclasses import dataclass, fields

from capsmith_runtime.infrastructure.caches import InfrastructureCaches
from capsmith_runtime.infrastructure.credentials import CredentialsResolver
from capsmith_runtime.infrastructure.workload_client import WorkloadAccess
from capsmith_runtime.reconcile.context import ControllerContext


@dataclass(frozen=True, slots=True, kw_only=True)
class InfrastructureContext(ControllerContext):
    """The dependencies of a controller, with the infrastructure's caches and credentials."""

    caches: InfrastructureCaches
    credentials: CredentialsResolver
    workload: WorkloadAccess | None = None
    """Clients of workload clusters, if a kind has the feature."""

    @classmethod
    def extend(
        cls,
        context: ControllerContext,
        caches: InfrastructureCaches,
        workload: WorkloadAccess | None = None,
    ) -> InfrastructureContext:
        """Return the manager's context with the infrastructure's caches and clients added."""
        common = {field.name: getattr(context, field.name) for field in fields(ControllerContext)}
        credentials = CredentialsResolver(caches, caches.core.scope.own_namespace)
        return cls(**common, caches=caches, credentials=credentials, workload=workload)
