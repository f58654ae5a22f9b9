"""Fake management clusters with the manager of a provider whose kinds implement Resource."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from capsmith_runtime.component import Component
from capsmith_runtime.infrastructure.controllers import InfrastructureControllers
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.resource.caches import ResourceKind
from capsmith_runtime.testing.environment import TestEnvironment, condition
from capsmith_runtime.testing.infrastructure.environment import InfrastructureEnvironment
from capsmith_runtime.testing.infrastructure.fake_core import GROUP, NAMESPACE
from capsmith_runtime.testing.provider import HasResources, InfrastructureDouble, ProviderUnderTest


class BaseResourceEnvironment(TestEnvironment):
    """A fake management cluster with one kind that implements Resource."""

    infrastructure: InfrastructureDouble
    kind: ResourceKind

    @property
    def key(self) -> NamespacedName:
        """Return the key of the resource under test."""
        return NamespacedName(NAMESPACE if self.kind.resource.namespaced else "", "r1")

    def existing(self) -> list[str]:
        """Return a name for each resource that exists in the infrastructure.

        The names may have any format. There are none if nothing is created for a resource.
        """
        return self._find_created() or []

    def check_created(self, others: Sequence[str] = ()) -> None:
        """Fail the test unless one resource exists in the infrastructure besides ``others``.

        The test goes on if the provider creates nothing for a resource.
        """
        names = self._find_created()
        if names is not None:
            message = f"resources() of the test double returned {names}"
            assert len(names) == len(others) + 1, message

    def _find_created(self) -> list[str] | None:
        """Return the names in the infrastructure; None if nothing is created for a resource."""
        double = self.infrastructure
        assert isinstance(double, HasResources), f"{type(double).__name__} needs resources()"
        try:
            return double.resources()
        except NotImplementedError:
            return None

    def add(self, *owners: JSON, cluster: str = "", annotations: JSON | None = None) -> None:
        """Add the resource with these owners, and with a label for ``cluster`` if it is set."""
        metadata: dict[str, Any] = {
            "name": self.key.name,
            "annotations": dict(annotations or {}),
            "labels": {f"{GROUP}/cluster-name": cluster} if cluster else {},
            "ownerReferences": [_reference_to(owner) for owner in owners],
        }
        if self.key.namespace:
            metadata["namespace"] = self.key.namespace
        resource = self.kind.resource
        self.api.add(
            {
                "apiVersion": resource.api_version,
                "kind": resource.kind,
                "metadata": metadata,
                "spec": self.manifests.sample_spec(resource.kind),
            }
        )

    def change(self, body: JSON) -> None:
        """Apply a merge patch to the resource, as a user does."""
        self.api.change(self.kind.resource.kind, self.key, body)

    def delete(self) -> None:
        """Delete the resource, as a user or the garbage collector does."""
        self.api.remove(self.kind.resource.kind, self.key)

    def found(self) -> JSON | None:
        """Return the resource, or None if it no longer exists."""
        return self.api.find(self.kind.resource.kind, self.key)

    def resource(self) -> JSON:
        """Return the resource's current object; the test fails if it does not exist."""
        obj = self.found()
        assert obj is not None, f"{self.key} is gone"
        return obj

    def ready(self) -> tuple[str, str]:
        """Return the status and reason of the resource's Ready condition.

        A kind that cannot have conditions counts as ready while its infrastructure exists.
        """
        obj = self.resource()
        if not self.has_conditions(obj):
            return ("True", "Ready") if self.existing() else ("", "")
        status, reason = condition(obj, "Ready")
        # A CRD may have no reasons in conditions.
        return status, reason or ("Ready" if status == "True" else "")

    async def is_ready(self) -> None:
        """Wait until the resource is ready."""
        await self.eventually("the resource is ready", lambda: self.ready() == ("True", "Ready"))

    async def is_deleted(self) -> None:
        """Wait until the resource is gone."""
        await self.eventually("the resource is gone", lambda: self.found() is None)


class ResourceEnvironment(BaseResourceEnvironment, InfrastructureEnvironment):
    """A management cluster with the infrastructure's kinds and the resource's kind."""

    def __init__(
        self,
        provider: ProviderUnderTest,
        component: Component,
        core_version: str,
        *,
        infrastructure: InfrastructureDouble,
        controllers: InfrastructureControllers,
        kind: ResourceKind,
    ) -> None:
        super().__init__(
            provider,
            component,
            core_version,
            infrastructure=infrastructure,
            controllers=controllers,
            cluster_kind=controllers.clusters[0],
            machine_kind=next(iter(controllers.machines), None),
        )
        self.kind = kind


class StandaloneResourceEnvironment(BaseResourceEnvironment):
    """A management cluster with the resource of a provider without infrastructure."""

    def __init__(
        self,
        provider: ProviderUnderTest,
        component: Component,
        core_version: str,
        *,
        infrastructure: InfrastructureDouble,
        kind: ResourceKind,
    ) -> None:
        super().__init__(provider, component, core_version)
        self.infrastructure = infrastructure
        self.kind = kind

    def add_cluster(self, *, paused: bool = False) -> NamespacedName:
        """Add a Cluster to the fake API server, and return its key."""
        key = NamespacedName(NAMESPACE, "c1")
        self.api.add(
            {
                "apiVersion": f"{GROUP}/{self.api.core_version}",
                "kind": "Cluster",
                "metadata": {"namespace": key.namespace, "name": key.name},
                "spec": {"paused": True} if paused else {},
            }
        )
        return key

    def pause(self, cluster: NamespacedName, paused: bool = True) -> None:
        """Set or remove a Cluster's ``spec.paused``."""
        self.api.change("Cluster", cluster, {"spec": {"paused": paused or None}})


def _reference_to(owner: JSON) -> JSON:
    names = {name: owner["metadata"][name] for name in ("name", "uid")}
    return {"apiVersion": owner["apiVersion"], "kind": owner["kind"], **names}
