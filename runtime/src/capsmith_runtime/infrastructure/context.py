"""Dependencies shared by all controllers of an infrastructure provider."""

from __future__ import annotations

from dataclasses import dataclass, fields

from capsmith_runtime.identity.resolver import CredentialsResolver
from capsmith_runtime.infrastructure.caches import InfrastructureCaches
from capsmith_runtime.infrastructure.terminations import SECOND_LOOK_DEBOUNCES, TerminationTracker
from capsmith_runtime.infrastructure.workload_client import WorkloadAccess
from capsmith_runtime.reconcile.context import ControllerContext


@dataclass(frozen=True, slots=True, kw_only=True)
class InfrastructureContext(ControllerContext):
    """Dependencies shared by an infrastructure provider's controllers, such as its caches."""

    caches: InfrastructureCaches
    credentials: CredentialsResolver
    terminations: TerminationTracker
    workload: WorkloadAccess | None = None
    """Clients for workload clusters, or None if no kind has the feature ``workloadClient``."""

    @classmethod
    def extend(
        cls,
        context: ControllerContext,
        caches: InfrastructureCaches,
        workload: WorkloadAccess | None = None,
    ) -> InfrastructureContext:
        """Return the manager's context with the infrastructure's caches and workload clients."""
        common = {field.name: getattr(context, field.name) for field in fields(ControllerContext)}
        credentials = CredentialsResolver(caches.identity)
        terminations = TerminationTracker(SECOND_LOOK_DEBOUNCES * context.debounce_seconds)
        caches.core.metrics.terminations_held.set_function(terminations.count_held)
        return cls(
            **common,
            caches=caches,
            credentials=credentials,
            terminations=terminations,
            workload=workload,
        )
