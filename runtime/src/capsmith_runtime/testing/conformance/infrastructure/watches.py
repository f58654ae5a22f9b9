"""Clusters that watch their machines, and sessions that watch the infrastructure."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from capsmith_runtime.contract import constants
from capsmith_runtime.infrastructure.api import WatchedMachines
from capsmith_runtime.kube.client import NamespacedName
from capsmith_runtime.reconcile.session_tasks import WATCH_ENDED, WATCH_RUNS_ON
from capsmith_runtime.reconcile.sessions import SessionFactory
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.infrastructure.base import (
    InfrastructureCase,
    InfrastructureConformance,
)
from capsmith_runtime.testing.infrastructure.environment import InfrastructureEnvironment
from capsmith_runtime.testing.provider import ProviderUnderTest


class TestWatchedMachines(InfrastructureConformance):
    """Clusters and their machines; requires a cluster reconciler with ``watched_machines``."""

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[InfrastructureCase]:
        """Return the pairs of kinds whose clusters are reconciled when machines change."""
        return [
            case
            for case in super().cases(provider)
            if case.cluster_kind.reconciler.watched_machines is not WatchedMachines.NONE
        ]

    @scenario
    async def test_a_cluster_stays_ready_while_machines_come_and_go(
        self, env: InfrastructureEnvironment
    ) -> None:
        """A cluster stays ready while a machine waits, gets a server and is deleted.

        A waiting machine is in ``cluster.machines`` without addresses or a provider ID.
        """
        cluster = await env.running_cluster()
        await _is_ready(env, cluster)
        machine = env.core.add_machine(cluster, bootstrap=False)
        kind = env.machine_kind.resource.kind
        labels = {constants.CONTROL_PLANE_LABEL: ""}
        env.api.change(kind, machine, {"metadata": {"labels": labels}})
        await _is_ready(env, cluster)
        env.core.add_bootstrap(machine)
        await env.eventually("the machine is provisioned", lambda: env.has_machine(machine))
        await _is_ready(env, cluster)
        env.api.remove("Machine", machine)
        env.api.remove(kind, machine)
        await env.eventually("it is gone", lambda: env.is_gone(env.machine_kind, machine))
        await _is_ready(env, cluster)


class TestSessionWatches(InfrastructureConformance):
    """Background tasks of sessions; requires a session factory with the method ``watch``."""

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[InfrastructureCase]:
        """Return the pairs of kinds whose machines have sessions with a watch."""
        return [case for case in super().cases(provider) if _has_watch(case)]

    @scenario
    async def test_a_watch_lasts_until_its_session_is_closed(
        self, env: InfrastructureEnvironment, caplog: pytest.LogCaptureFixture
    ) -> None:
        """``watch`` neither returns nor raises an exception while its session is open.

        Whatever changes before it is called again is missed.
        """
        await env.running_machine(await env.running_cluster())
        await env.quiet()
        assert WATCH_ENDED not in caplog.text

    @scenario
    async def test_a_watch_ends_with_its_session(
        self, env: InfrastructureEnvironment, caplog: pytest.LogCaptureFixture
    ) -> None:
        """``watch`` returns soon after ``changes.wait`` returns True, or can be cancelled.

        Otherwise it keeps using a closed session, and every change to the credentials leaves
        another such watch running.
        """
        await env.running_machine(await env.running_cluster())
        await env.stop()
        assert WATCH_RUNS_ON not in caplog.text


async def _is_ready(env: InfrastructureEnvironment, cluster: NamespacedName) -> None:
    """Wait until all changes are reconciled and the infrastructure cluster is ready."""
    await env.quiet()
    await env.eventually(
        "the cluster is ready",
        lambda: env.shows(env.core.infra_cluster(cluster), "Ready", "True"),
    )


def _has_watch(case: InfrastructureCase) -> bool:
    factory = case.machine_kind.reconciler.session_factory
    return factory is not None and factory.watch is not SessionFactory.watch
