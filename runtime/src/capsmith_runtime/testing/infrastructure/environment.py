"""A fake management cluster with an infrastructure provider's manager."""

from __future__ import annotations

from collections.abc import Mapping

from capsmith_runtime.component import Component
from capsmith_runtime.contract import constants, external_id
from capsmith_runtime.infrastructure.controllers import InfrastructureControllers
from capsmith_runtime.infrastructure.kinds import IdentityKind, InfraClusterKind, InfraMachineKind
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.testing.environment import TestEnvironment
from capsmith_runtime.testing.infrastructure.fake_core import BOOTSTRAP_SECRET, NAMESPACE, FakeCore
from capsmith_runtime.testing.provider import InfrastructureDouble, NeedsObjects, ProviderUnderTest


class InfrastructureEnvironment(TestEnvironment):
    """A management cluster with one kind of infrastructure cluster and one kind of machine.

    The provider may have no machines.
    """

    def __init__(
        self,
        provider: ProviderUnderTest,
        component: Component,
        core_version: str,
        *,
        infrastructure: InfrastructureDouble,
        controllers: InfrastructureControllers,
        cluster_kind: InfraClusterKind,
        machine_kind: InfraMachineKind | None,
        identity_kind: IdentityKind | None = None,
    ) -> None:
        super().__init__(provider, component, core_version)
        self.infrastructure = infrastructure
        self.controllers = controllers
        self.cluster_kind, self.has_machines = cluster_kind, machine_kind is not None
        self.core = FakeCore(
            self.api,
            cluster_kind,
            machine_kind,
            manifests=self.manifests,
            identity_kind=identity_kind,
        )
        self.core.add_credentials(controllers.identities, component.namespace)
        if isinstance(infrastructure, NeedsObjects):
            for obj in infrastructure.objects():
                self.api.add(obj)

    def secret_values(self) -> Mapping[str, str]:
        """Return the secret values of the samples, and that of the bootstrap data."""
        return {**super().secret_values(), BOOTSTRAP_SECRET: "a token of the bootstrap data"}

    @property
    def machine_kind(self) -> InfraMachineKind:
        """Return the kind of machine; the test fails if the provider has none."""
        return self.core.machine_kind

    async def running_cluster(self, *, namespace: str = NAMESPACE) -> NamespacedName:
        """Add a cluster, and wait until core has recorded its infrastructure as provisioned."""
        key = self.core.add_cluster(namespace=namespace)
        await self.cluster_is_provisioned(key)
        self.core.infrastructure_is_ready(key)
        return key

    async def running_machine(
        self, cluster: NamespacedName, name: str = "m1", *, failure_domain: str | None = None
    ) -> NamespacedName:
        """Add a machine, and wait until it is provisioned.

        The machine may be created in any failure domain if ``failure_domain`` is None.
        """
        key = self.core.add_machine(cluster, name, failure_domain=failure_domain)
        await self.eventually("the machine is provisioned", lambda: self.has_machine(key))
        await self.quiet()
        return key

    async def abandon_machine(self, key: NamespacedName) -> None:
        """Remove a machine object but not its server, which now counts as another owner's."""
        await self.stop()
        kind = self.machine_kind.resource.kind
        self.api.change(kind, key, {"metadata": {"finalizers": None}})
        self.api.remove(kind, key)
        self.api.remove("Machine", key)
        self.start()

    def add_machine_without_owner(
        self,
        cluster: NamespacedName,
        name: str,
        spec: JSON,
        *,
        namespace: str | None = None,
        copied_id: str | None = None,
    ) -> NamespacedName:
        """Add an infrastructure machine as a user can, with a finalizer and without a Machine.

        ``copied_id`` is the external id of another object.
        """
        kind = self.machine_kind
        key = NamespacedName(namespace or cluster.namespace, name)
        metadata: JSON = {"namespace": key.namespace, "name": key.name}
        metadata["labels"] = {constants.CLUSTER_NAME_LABEL: cluster.name}
        metadata["finalizers"] = [kind.finalizer]
        if copied_id is not None:
            metadata["annotations"] = {external_id.annotation(kind.resource.group): copied_id}
        self.api.add(
            {
                "apiVersion": kind.resource.api_version,
                "kind": kind.resource.kind,
                "metadata": metadata,
                "spec": {**self.manifests.sample_spec(kind.resource.kind), **spec},
            }
        )
        return key

    async def cluster_is_provisioned(self, key: NamespacedName) -> None:
        """Wait until a cluster's infrastructure is provisioned."""
        await self.eventually("the cluster is provisioned", lambda: self.has_cluster(key))

    def has_cluster(self, key: NamespacedName) -> bool:
        """Return whether an infrastructure cluster is provisioned."""
        return self.core.provisioned(self.core.infra_cluster(key))

    def has_machine(self, key: NamespacedName) -> bool:
        """Return whether an infrastructure machine is provisioned."""
        return self.core.provisioned(self.core.infra_machine(key))

    def is_gone(self, kind: InfraClusterKind | InfraMachineKind, key: NamespacedName) -> bool:
        """Return whether an object that the provider manages no longer exists."""
        return self.api.find(kind.resource.kind, key) is None
