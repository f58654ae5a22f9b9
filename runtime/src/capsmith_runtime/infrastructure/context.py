"""Context and base class of infrastructure controllers."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TypeVar

from capsmith_runtime.infrastructure.caches import InfrastructureCaches
from capsmith_runtime.infrastructure.credentials import CredentialsResolver
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.reconcile.base import BaseController, ControllerContext
from capsmith_runtime.reconcile.kinds import Kind

R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class InfrastructureContext(ControllerContext):
    """The context of a controller, with the infrastructure's caches and credentials."""

    caches: InfrastructureCaches
    credentials: CredentialsResolver

    @classmethod
    def extend(
        cls, context: ControllerContext, caches: InfrastructureCaches
    ) -> InfrastructureContext:
        """Add the infrastructure's caches to the context of a manager."""
        common = {field.name: getattr(context, field.name) for field in fields(ControllerContext)}
        credentials = CredentialsResolver(caches, caches.core.scope.own_namespace)
        return cls(**common, caches=caches, credentials=credentials)


class InfrastructureController(BaseController[R]):
    """Base class of the controllers of infrastructure clusters, machines and pools."""

    def __init__(
        self,
        kind: Kind[R],
        informer: Informer,
        context: InfrastructureContext,
        reconciler: R | None = None,
    ) -> None:
        super().__init__(kind, informer, context.caches.core, context, reconciler)
        self._infrastructure = context.caches
        self._credentials = context.credentials
