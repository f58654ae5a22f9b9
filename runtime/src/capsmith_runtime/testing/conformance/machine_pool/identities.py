"""Machine pools with an identity of their own, whose servers are in another account."""

from __future__ import annotations

from collections.abc import Sequence

from capsmith_runtime.kube.client import JSON
from capsmith_runtime.reconcile.kinds import CREDENTIALS_FEATURE
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.machine_pool.base import (
    MachinePoolConformance,
    PoolCase,
    PoolMachinesCase,
    PoolMachinesConformance,
)
from capsmith_runtime.testing.identities import add_other, copy_first, has_sessions, remove_identity
from capsmith_runtime.testing.machine_pool.environment import (
    MachinePoolEnvironment,
    PoolMachinesEnvironment,
)
from capsmith_runtime.testing.provider import ProviderUnderTest, SeparatesAccounts, has_accounts


class TestMachinePoolIdentities(MachinePoolConformance):
    """Identities of machine pools; requires the feature ``credentials`` and a session factory."""

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[PoolCase]:
        """Return the cases for the kinds that use their own identity through sessions."""
        return [each for each in super().cases(provider) if _uses_own_sessions(each)]

    @scenario
    async def test_a_pool_without_its_own_identity_is_not_forgotten(
        self, env: MachinePoolEnvironment
    ) -> None:
        """A pool whose own identity is gone is deleted only when that identity is back.

        Until then it reports what is missing, and its cluster's machines are not affected. The
        cluster's identity is no substitute: do not catch the error that ``session`` raises.
        """
        kind = env.kind.resource.kind
        reference = copy_first(env.api, env.manifests, env.controllers.identities)
        _add_pool(env, reference)
        await env.settled(1)
        identity = remove_identity(env.api, reference)
        missing = ("Unknown", "IdentityNotFound")
        await env.eventually("it says so", lambda: env.shows(env.infra_pool(), "Ready", *missing))
        machine = env.core.add_machine(env.cluster)
        await env.eventually(
            "the machine is provisioned",
            lambda: env.core.provisioned(env.core.infra_machine(machine)),
        )
        env.api.remove(kind, env.pool)
        await env.quiet()
        assert len(env.infrastructure.servers()) == 2, "deleted without credentials"
        assert env.infra_pool()["metadata"]["finalizers"] == [env.kind.finalizer]

        env.api.add(identity)
        await env.eventually("it is gone", lambda: env.api.find(kind, env.pool) is None)
        assert len(env.infrastructure.servers()) == 1


class TestAccountsOfMachinePools(MachinePoolConformance):
    """Accounts of pools with an identity of their own.

    Requires a test double with the methods ``accounts`` and ``other_credentials``.
    """

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[PoolCase]:
        """Return the cases for the kinds that use their own identity through sessions."""
        if not has_accounts(provider):
            return []
        return [each for each in super().cases(provider) if _uses_own_sessions(each)]

    @scenario
    async def test_servers_are_in_the_account_of_the_pool(
        self, env: MachinePoolEnvironment
    ) -> None:
        """A pool's servers are created and deleted with the pool's identity, not its cluster's.

        The Secret of that identity stays until the pool is gone.
        """
        await _use_two_accounts(env)


class TestAccountsOfPoolMachines(PoolMachinesConformance):
    """Accounts of pools with Machines that have an identity of their own.

    Requires a test double with the methods ``accounts`` and ``other_credentials``.
    """

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[PoolMachinesCase]:
        """Return the cases for the kinds whose machines use the pool's identity in sessions."""
        if not has_accounts(provider):
            return []
        return [
            case
            for case in super().cases(provider)
            if _has_identities(case)
            for machines in case.controllers.machines
            if machines.resource == case.kind.machines
            if machines.reconciler.session_factory is not None
        ]

    @scenario
    async def test_servers_are_in_the_account_of_the_pool(
        self, env: PoolMachinesEnvironment
    ) -> None:
        """A pool's machines are created and deleted with the pool's identity, not their cluster's.

        The Secret of that identity stays until the pool is gone.
        """
        await _use_two_accounts(env)


async def _use_two_accounts(env: MachinePoolEnvironment) -> None:
    """Create a pool with the identity of its cluster, and then one with its own."""
    double = env.infrastructure
    assert isinstance(double, SeparatesAccounts)
    values = double.other_credentials()
    reference, secret = add_other(env.api, env.manifests, env.controllers.identities, values)
    _add_pool(env, None)
    await env.settled(1)
    (shared,) = double.accounts().values()
    await _delete(env)
    env.api.remove("MachinePool", env.machine_pool)

    _add_pool(env, reference)
    await env.settled(1)
    (own,) = double.accounts().values()
    assert own != shared, "created with the identity of the cluster"
    # As the deletion of a namespace does.
    env.api.remove("Secret", secret)
    await env.settled(1)
    assert env.api.find("Secret", secret) is not None
    await _delete(env)
    await env.eventually("it is free", lambda: env.api.find("Secret", secret) is None)


def _add_pool(env: MachinePoolEnvironment, reference: JSON | None) -> None:
    """Add a pool that names an identity; with None, it uses that of its cluster."""
    env.add_pool(1)
    change = {"spec": {"identityRef": reference}}
    env.api.change(env.kind.resource.kind, env.pool, change)


async def _delete(env: MachinePoolEnvironment) -> None:
    kind = env.kind.resource.kind
    env.api.remove(kind, env.pool)
    await env.eventually("it is gone", lambda: env.api.find(kind, env.pool) is None)
    assert env.infrastructure.servers() == []


def _uses_own_sessions(case: PoolCase) -> bool:
    return bool(case.controllers.identities) and has_sessions(case.kind)


def _has_identities(case: PoolCase) -> bool:
    return bool(case.controllers.identities) and CREDENTIALS_FEATURE in case.kind.features
