"""The provider under test: its components, its manifests, and the author's test doubles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

import pytest

from capsmith_runtime.component import Component
from capsmith_runtime.kube.client import NamespacedName
from capsmith_runtime.reconcile.groups import ControllerGroupFactory
from capsmith_runtime.testing.faults import Faults
from capsmith_runtime.testing.manifests import Manifests

G = TypeVar("G")


class ServiceDouble(Protocol):
    """Protocol for a service's test double; each test gets a new instance."""

    def __init__(self, folder: Path) -> None: ...

    def start(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Make reconcilers that are created from now on use the test double."""


class InfrastructureDouble(ServiceDouble, Protocol):
    """Protocol for a test double of the infrastructure."""

    def servers(self) -> list[str]:
        """Return the names of the existing servers; the names may have any format."""
        ...

    def clusters(self) -> list[str]:
        """Return one name, in any format, for each cluster whose shared infrastructure exists.

        Raise NotImplementedError with a reason if the provider creates nothing for a cluster.
        """
        ...


@runtime_checkable
class NeedsObjects(Protocol):
    """Protocol for a test double whose machines need objects that users create first.

    This protocol is optional: most providers need no objects but those that the tests create.
    """

    def objects(self) -> list[dict[str, Any]]:
        """Return the objects that exist before each test, such as the hosts of an inventory."""
        ...


@runtime_checkable
class RemovesServers(Protocol):
    """Protocol for a test double that can lose a server.

    This protocol is optional, because doubles for capsmith 0.1 cannot lose servers.
    """

    def remove_server(self, name: str) -> None:
        """Remove a server without the reconciler, as a cloud user or a failure would."""


@runtime_checkable
class LocatesServers(Protocol):
    """Protocol for a test double that knows in which failure domains its servers are.

    This protocol is optional: not every infrastructure has failure domains.
    """

    def failure_domains(self) -> dict[str, str]:
        """Return the failure domain of each server, keyed by its name in ``servers()``.

        Servers without a failure domain are left out.
        """
        ...


@runtime_checkable
class SeparatesAccounts(Protocol):
    """Protocol for a test double that knows to which accounts its servers belong.

    This protocol is optional: not every infrastructure has accounts.
    """

    def accounts(self) -> dict[str, str]:
        """Return the account of each server, keyed by its name in ``servers()``.

        An account may have any name; each identity has one of its own.
        """
        ...

    def other_credentials(self) -> dict[str, str]:
        """Return the content of a Secret for another account than that of the samples."""
        ...


@runtime_checkable
class KnowsUserData(Protocol):
    """Protocol for a test double that knows the bootstrap data of its servers.

    This protocol is optional: not every infrastructure passes them on as text.
    """

    def user_data(self) -> dict[str, str]:
        """Return the bootstrap data of each server as text, keyed by its name in ``servers()``."""
        ...


@runtime_checkable
class KnowsVersions(Protocol):
    """Protocol for a test double that knows the Kubernetes versions of its servers.

    This protocol is optional: only the servers of pools without Machines need it.
    """

    def versions(self) -> dict[str, str]:
        """Return the Kubernetes version of each server, keyed by its name in ``servers()``.

        Servers whose version is not known, such as those of Machines, are left out.
        """
        ...


@runtime_checkable
class ScalesPools(Protocol):
    """Protocol for a test double whose pools of servers can have an autoscaler of their own.

    This protocol is optional: only pools without Machines need it.
    """

    def scale_pools(self, size: int) -> None:
        """Set the size of each pool, as the infrastructure's own autoscaler does.

        The servers may be created and deleted later, for example when the pool is reconciled.
        """

    def pool_sizes(self) -> list[int]:
        """Return the desired size of each pool, including changes by the autoscaler."""
        ...


@runtime_checkable
class SimulatesFaults(Protocol):
    """Protocol for a test double whose calls can fail.

    This protocol is optional, because calls of doubles for capsmith 0.1 cannot fail.
    """

    def simulate(self, faults: Faults) -> None:
        """Make calls fail from now on as ``faults`` specifies; ``Faults()`` stops that.

        Raises NotImplementedError with a reason for faults that cannot be simulated; tests that
        need them are then skipped.
        """


@runtime_checkable
class HasResources(Protocol):
    """Protocol for an infrastructure test double, if any of the kinds implement Resource."""

    def resources(self) -> list[str]:
        """Return one name, in any format, for each resource whose infrastructure exists.

        Raise NotImplementedError with a reason if the provider creates nothing for a resource.
        """
        ...


@runtime_checkable
class HasRemediations(Protocol):
    """Protocol for an infrastructure test double, if any of the kinds implement Remediation."""

    def remediations(self) -> list[str]:
        """Return one name, in any format, for each remediation that has been carried out.

        A restart is an example; those of former remediations count, too.
        """
        ...


@runtime_checkable
class KnowsAddresses(Protocol):
    """Protocol for a test double of an IPAM system that knows what is allocated.

    This protocol is optional, because doubles for earlier releases of capsmith do not know it.
    """

    def addresses(self) -> list[str]:
        """Return one name, in any format, for each address that is allocated."""
        ...


class WorkloadCluster(Protocol):
    """Protocol for the objects of a workload cluster in the tests, without requests."""

    def all(self, kind: str) -> list[dict[str, Any]]:
        """Return all objects of a kind, such as Node."""
        ...

    def change(self, kind: str, key: NamespacedName, body: dict[str, Any]) -> dict[str, Any]:
        """Apply a JSON merge patch to an object, as another client does."""
        ...


class MembersDouble(ServiceDouble, Protocol):
    """Protocol for a test double of what runs on the machines of a control plane, such as etcd."""

    def act(self, cluster: WorkloadCluster) -> None:
        """Do what the software on the machines does whenever an object has changed.

        For example, let a new Node join, and let a Node leave whose annotation requests it.
        """

    def members(self) -> list[str]:
        """Return the names of the Nodes that are members."""
        ...


class HostingDouble(ServiceDouble, Protocol):
    """Protocol for a test double for the service that runs managed control planes."""

    def control_planes(self) -> dict[str, str]:
        """Return each existing control plane's Kubernetes version, keyed by any unique name."""
        ...

    def change_credentials(self, monkeypatch: pytest.MonkeyPatch, kubeconfig: str) -> None:
        """Make the service return ``kubeconfig`` for all control planes from now on."""


@dataclass(frozen=True, kw_only=True)
class ProviderUnderTest:
    """The inputs of the conformance tests for a provider."""

    components: Mapping[str, Component]
    """The repository's components, keyed by type."""
    repository: Path
    """Path to the root of the repository."""
    config: tuple[str, ...] = ("config",)
    """Manifest folders relative to the root: one for each component, in the same order."""
    infrastructure: type[InfrastructureDouble] | None = None
    """Test double for the infrastructure, or None without an infrastructure component."""
    hosting: type[HostingDouble] | None = None
    """Test double for the service that runs managed control planes, or None if there are none."""
    address_system: type[ServiceDouble] | None = None
    """Test double for the external IPAM system, or None if all pools have their own ranges.

    It may have the methods of ``KnowsAddresses`` and ``SimulatesFaults``.
    """
    addons: type[ServiceDouble] | None = None
    """Test double for what add-ons install, or None if there are no add-ons.

    It has the methods of ``capsmith_runtime.testing.addon.environment.AddonDouble``.
    """

    @cached_property
    def manifests(self) -> Manifests:
        """Return the manifests of all components."""
        folders = [self.repository / each for each in self.config]
        return Manifests(folders, [group for _, group in self.groups()])

    def manifests_of(self, component: Component) -> Manifests:
        """Return the manifests of the given component."""
        labels = [each.label for each in self.components.values()]
        (folder,) = (
            folder
            for label, folder in zip(labels, self.config, strict=True)
            if label == component.label
        )
        return Manifests([self.repository / folder], component.groups)

    @property
    def core_versions(self) -> tuple[str, ...]:
        """Return the core versions that the provider can run with."""
        # Core with contract v1beta2 still accepts providers of v1beta1, but not vice versa.
        return ("v1beta2", "v1beta1") if self.manifests.contract == "v1beta1" else ("v1beta2",)

    def groups(self) -> Iterator[tuple[Component, ControllerGroupFactory]]:
        """Yield all groups of controllers, each with its component."""
        for component in self.components.values():
            for group in component.groups:
                yield component, group

    def slices(self) -> set[str]:
        """Return the runtime slices that the groups of controllers belong to."""
        groups: list[Any] = [group for _, group in self.groups()]
        parts = [part for group in groups for part in getattr(group, "additional", ())]
        pools = {"machine_pool" for group in groups if getattr(group, "pools", None) is not None}
        identities = {"identity" for group in groups if getattr(group, "identities", ())}
        return {slice_of(each) for each in (*groups, *parts)} | pools | identities

    @property
    def has_version_fields(self) -> bool:
        """Return whether the author's code converts fields between API versions."""
        groups: list[Any] = [group for _, group in self.groups()]
        return any(
            kind.fields
            for group in groups
            if slice_of(group) == "conversion"
            for kind in group.kinds
        )

    def groups_of(self, kind: type[G]) -> list[tuple[Component, G]]:
        """Return the groups of controllers of type ``kind``, each with its component."""
        found: list[tuple[Component, Any]] = list(self.groups())
        return [(component, group) for component, group in found if isinstance(group, kind)]


def simulate(double: object, faults: Faults) -> None:
    """Make a test double's calls fail from now on; skip the test if it cannot simulate that."""
    assert isinstance(double, SimulatesFaults)
    try:
        double.simulate(faults)
    except NotImplementedError as error:
        pytest.skip(f"not simulated: {faults}: {error}")


def list_clusters(double: InfrastructureDouble) -> list[str]:
    """Return the names of a double's clusters, or none if nothing is created for a cluster."""
    try:
        return double.clusters()
    except NotImplementedError:
        return []


def has_accounts(provider: ProviderUnderTest) -> bool:
    """Return whether the test double knows to which accounts its servers belong."""
    return hasattr(provider.infrastructure, "accounts")


def slice_of(group: object) -> str:
    """Return the runtime slice that a group of controllers belongs to."""
    return type(group).__module__.removeprefix("capsmith_runtime.").partition(".")[0]


def replace_group(
    component: Component, old: ControllerGroupFactory, new: ControllerGroupFactory
) -> Component:
    """Return a copy of the component, with ``new`` instead of the group of controllers ``old``."""
    groups = tuple(new if group is old else group for group in component.groups)
    return replace(component, groups=groups)
