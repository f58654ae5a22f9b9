"""Machines with an identity of their own, and identities that are derived from others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from capsmith_runtime.infrastructure.kinds import IdentityKind
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.reconcile.kinds import CREDENTIALS_FEATURE
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.infrastructure.base import (
    InfrastructureCase,
    InfrastructureConformance,
)
from capsmith_runtime.testing.identities import (
    add_other,
    copy_first,
    find_source,
    has_sessions,
    remove_identity,
)
from capsmith_runtime.testing.infrastructure.environment import InfrastructureEnvironment
from capsmith_runtime.testing.provider import ProviderUnderTest, SeparatesAccounts, has_accounts


class TestMachineIdentities(InfrastructureConformance):
    """Identities of machines; requires the feature ``credentials`` and a session factory."""

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[InfrastructureCase]:
        """Return the pairs of kinds whose machines use their own identity through sessions."""
        return [each for each in super().cases(provider) if _uses_own_sessions(each)]

    @scenario
    async def test_a_machine_without_its_own_identity_is_not_forgotten(
        self, env: InfrastructureEnvironment
    ) -> None:
        """A machine whose own identity is gone is deleted only when that identity is back.

        The cluster's identity is no substitute: do not catch the error that ``session`` raises.
        """
        reference = copy_first(env.api, env.manifests, env.controllers.identities)
        cluster = await env.running_cluster()
        key = env.core.add_machine(cluster)
        change = {"spec": {"identityRef": reference}}
        env.api.change(env.machine_kind.resource.kind, key, change)
        await env.eventually("the machine is provisioned", lambda: env.has_machine(key))
        await env.quiet()
        await _delete_without(env, key, reference)


class TestAccountsOfMachines(InfrastructureConformance):
    """Accounts of machines with an identity of their own.

    Requires a test double with the methods ``accounts`` and ``other_credentials``.
    """

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[InfrastructureCase]:
        """Return the pairs of kinds whose machines use their own identity through sessions."""
        if not has_accounts(provider):
            return []
        return [each for each in super().cases(provider) if _uses_own_sessions(each)]

    @scenario
    async def test_servers_are_in_the_account_of_the_machine(
        self, env: InfrastructureEnvironment
    ) -> None:
        """A server is created and deleted with the machine's identity, not its cluster's."""
        double = env.infrastructure
        assert isinstance(double, SeparatesAccounts)
        values = double.other_credentials()
        reference, _ = add_other(env.api, env.manifests, env.controllers.identities, values)
        cluster = await env.running_cluster()
        await env.running_machine(cluster)
        shared = double.accounts()
        key = env.core.add_machine(cluster, "m2")
        change = {"spec": {"identityRef": reference}}
        env.api.change(env.machine_kind.resource.kind, key, change)
        await env.eventually("the machine is provisioned", lambda: env.has_machine(key))
        assert len(set(double.accounts().values())) == 2, "created with the cluster's identity"

        env.api.remove(env.machine_kind.resource.kind, key)
        await env.eventually("it is gone", lambda: env.is_gone(env.machine_kind, key))
        assert double.accounts() == shared


class TestAccountsOfClusters(InfrastructureConformance):
    """Accounts of clusters with different identities.

    Requires a test double with the methods ``accounts`` and ``other_credentials``.
    """

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[InfrastructureCase]:
        """Return the pairs of kinds whose machines use the cluster's identity through sessions."""
        if not has_accounts(provider):
            return []
        return [
            each
            for each in super().cases(provider)
            if each.controllers.identities
            and CREDENTIALS_FEATURE in each.cluster_kind.features
            and each.machine_kind.reconciler.session_factory is not None
        ]

    @scenario
    async def test_servers_are_in_the_account_of_their_cluster(
        self, env: InfrastructureEnvironment
    ) -> None:
        """Each cluster has its servers in the account of its own identity.

        A client that all sessions share, or credentials from the environment of the manager, put
        them all into one.
        """
        double = env.infrastructure
        assert isinstance(double, SeparatesAccounts)
        values = double.other_credentials()
        reference, _ = add_other(env.api, env.manifests, env.controllers.identities, values)
        await env.running_machine(await env.running_cluster(), "m1")
        cluster = env.core.add_cluster("c2")
        change = {"spec": {"identityRef": reference}}
        env.api.change(env.cluster_kind.resource.kind, cluster, change)
        await env.cluster_is_provisioned(cluster)
        env.core.infrastructure_is_ready(cluster)
        await env.running_machine(cluster, "m2")
        accounts = double.accounts()
        assert len(set(accounts.values())) == 2, f"two identities use one account: {accounts}"


class TestSourceIdentities(InfrastructureConformance):
    """Identities derived from others; requires a kind with ``sources`` and a session factory."""

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[InfrastructureCase]:
        """Return a case for each kind of identity whose sample is derived from another one."""
        return [
            replace(case, identity=identity)
            for case in super().cases(provider)[:1]
            if case.machine_kind.reconciler.session_factory is not None
            for identity in case.controllers.identities
            if find_source(provider.manifests, identity)
        ]

    @scenario
    async def test_a_machine_is_created_with_a_derived_identity(
        self, env: InfrastructureEnvironment
    ) -> None:
        """A cluster with a derived identity is provisioned, and so is its machine.

        Its ``credentials`` may be empty, because ``credentials.source`` holds those of the other
        identity.
        """
        await env.running_machine(await env.running_cluster())
        assert len(env.infrastructure.servers()) == 1

    @scenario
    async def test_a_machine_without_the_source_of_its_identity_is_not_forgotten(
        self, env: InfrastructureEnvironment
    ) -> None:
        """A machine is not deleted while the identity from which its own is derived does not exist.

        Without credentials nothing can be found or deleted: do not catch the error that ``session``
        raises.
        """
        key = await env.running_machine(await env.running_cluster())
        await _delete_without(env, key, find_source(env.manifests, _kind(env)))


async def _delete_without(
    env: InfrastructureEnvironment, key: NamespacedName, reference: JSON
) -> None:
    """Remove an identity, then a machine: its server has to stay until the identity is back."""
    identity = remove_identity(env.api, reference)
    env.api.remove(env.machine_kind.resource.kind, key)
    await env.quiet()
    assert len(env.infrastructure.servers()) == 1, "deleted without credentials"
    finalizers = env.core.infra_machine(key)["metadata"]["finalizers"]
    assert finalizers == [env.machine_kind.finalizer]

    env.api.add(identity)
    await env.eventually("it is gone", lambda: env.is_gone(env.machine_kind, key))
    assert env.infrastructure.servers() == []


def _uses_own_sessions(case: InfrastructureCase) -> bool:
    return bool(case.controllers.identities) and has_sessions(case.machine_kind)


def _kind(env: InfrastructureEnvironment) -> IdentityKind:
    assert env.core.identity_kind is not None
    return env.core.identity_kind
