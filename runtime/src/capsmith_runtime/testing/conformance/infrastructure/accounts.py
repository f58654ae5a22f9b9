"""Machines whose identity has credentials of another account."""

from __future__ import annotations

from collections.abc import Sequence

from capsmith_runtime.contract import metadata, records
from capsmith_runtime.reconcile.sessions import SessionFactory
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.infrastructure.base import (
    InfrastructureCase,
    InfrastructureConformance,
)
from capsmith_runtime.testing.infrastructure.environment import InfrastructureEnvironment
from capsmith_runtime.testing.provider import ProviderUnderTest


class TestAccounts(InfrastructureConformance):
    """Sessions of another account; requires a session factory with the method ``account``."""

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[InfrastructureCase]:
        """Return the pairs of kinds whose machines have sessions with an account."""
        return [case for case in super().cases(provider) if _has_account(case)]

    @scenario
    async def test_a_machine_of_another_account_is_left_alone(
        self, env: InfrastructureEnvironment
    ) -> None:
        """A machine records its account, and only a session of that account touches its server.

        Return the same account after each login, and access the infrastructure only through the
        session: the runtime compares nothing else.
        """
        kind = env.machine_kind.resource
        name = records.ACCOUNT.build_annotation_name(kind.group)
        cluster = await env.running_cluster()
        key = await env.running_machine(cluster)
        account = metadata.annotations(env.core.infra_machine(key))[name]
        await env.restart()
        await env.quiet()
        assert env.shows(env.core.infra_machine(key), "Ready", "True")

        other = {"metadata": {"annotations": {name: f"not-{account}"}}}
        env.api.change(kind.kind, key, other)
        refused = ("Unknown", "AccountChanged")
        await env.eventually(
            "it is refused", lambda: env.shows(env.core.infra_machine(key), "Ready", *refused)
        )
        env.api.remove(kind.kind, key)
        await env.quiet()
        assert len(env.infrastructure.servers()) == 1

        env.api.change(kind.kind, key, {"metadata": {"annotations": {name: account}}})
        await env.eventually("it is gone", lambda: env.is_gone(env.machine_kind, key))
        assert env.infrastructure.servers() == []


def _has_account(case: InfrastructureCase) -> bool:
    factory = case.machine_kind.reconciler.session_factory
    return factory is not None and factory.account is not SessionFactory.account
