"""Machine pools with an identity of their own."""

from __future__ import annotations

from collections.abc import Sequence

from capsmith_runtime.reconcile.kinds import CREDENTIALS_FEATURE
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.machine_pool.base import MachinePoolConformance, PoolCase
from capsmith_runtime.testing.identities import copy_first, remove_identity
from capsmith_runtime.testing.machine_pool.environment import MachinePoolEnvironment
from capsmith_runtime.testing.provider import ProviderUnderTest


class TestMachinePoolIdentities(MachinePoolConformance):
    """Identities of machine pools; requires the feature ``credentials`` and a session factory."""

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[PoolCase]:
        """Return the cases for the kinds that use their own identity through sessions."""
        return [
            case
            for case in super().cases(provider)
            if case.controllers.identities
            and CREDENTIALS_FEATURE in case.kind.features
            and case.kind.reconciler.session_factory is not None
        ]

    @scenario
    async def test_a_pool_without_its_own_identity_is_not_forgotten(
        self, env: MachinePoolEnvironment
    ) -> None:
        """A pool whose own identity is gone is deleted only when that identity is back.

        The cluster's identity is no substitute: do not catch the error that ``session`` raises.
        """
        kind = env.kind.resource.kind
        reference = copy_first(env.api, env.manifests, env.controllers.identities)
        env.add_pool(1)
        env.api.change(kind, env.pool, {"spec": {"identityRef": reference}})
        await env.settled(1)
        await env.quiet()
        identity = remove_identity(env.api, reference)
        env.api.remove(kind, env.pool)
        await env.quiet()
        assert len(env.infrastructure.servers()) == 1, "deleted without credentials"
        assert env.infra_pool()["metadata"]["finalizers"] == [env.kind.finalizer]

        env.api.add(identity)
        await env.eventually("it is gone", lambda: env.api.find(kind, env.pool) is None)
        assert env.infrastructure.servers() == []
