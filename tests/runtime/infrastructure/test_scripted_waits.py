"""Changes of other objects that a reconciler waits for."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any

import pytest

from capsmith_runtime.infrastructure import (
    Deleted,
    InfraClusterScope,
    InfraClusterState,
    InfraMachineDeleteScope,
    Waiting,
)
from capsmith_runtime.kube.client import NamespacedName
from capsmith_runtime.kube.clock import monotonic
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.environment import condition
from capsmith_runtime.testing.infrastructure.environment import InfrastructureEnvironment
from tests.runtime.infrastructure import scripted_provider
from tests.runtime.infrastructure.scripted_provider import (
    PROVISIONED,
    ScriptedClusterReconciler,
    ScriptedMachines,
    ScriptFactory,
    add_machine,
)

PROVIDER = scripted_provider.PROVIDER
NEVER = None


class TestWaits(ScriptedMachines):
    """Reconcilers that wait without a timer."""

    @scenario
    async def test_an_endpoint_from_elsewhere_ends_the_wait(
        self, env: InfrastructureEnvironment, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Proves: IC-04, IC-23."""

        def reconcile(self: object, cluster: InfraClusterScope[Any]) -> InfraClusterState | Waiting:
            if cluster.cluster.control_plane_endpoint is None:
                return Waiting("WaitingForEndpoint", requeue_after=NEVER)
            return InfraClusterState()

        monkeypatch.setattr(ScriptedClusterReconciler, "reconcile_normal", reconcile)
        key = env.core.add_cluster()
        expected = ("False", "WaitingForEndpoint")
        await env.eventually(
            "waiting", lambda: condition(env.core.infra_cluster(key), "Ready") == expected
        )
        await env.quiet()
        endpoint = {"spec": {"controlPlaneEndpoint": {"host": "10.0.0.1", "port": 6443}}}
        env.api.change("Cluster", key, endpoint)
        await env.cluster_is_provisioned(key)

    @scenario
    async def test_new_credentials_reach_existing_machines(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        script = normal(replace(PROVISIONED, requeue_after=NEVER))
        cluster = await env.running_cluster()
        await env.running_machine(cluster)
        namespace = env.component.namespace
        (secret,) = (
            each for each in env.api.all("Secret") if each["metadata"]["namespace"] == namespace
        )
        token = {"data": {"token": base64.b64encode(b"rotated").decode()}}
        env.api.change("Secret", NamespacedName(namespace, secret["metadata"]["name"]), token)
        await env.eventually(
            "received", lambda: script.calls[-1].credentials == {"token": "rotated"}
        )

    @scenario
    async def test_a_node_that_joins_ends_the_wait(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        script = normal(replace(PROVISIONED, requeue_after=NEVER))
        cluster = await env.running_cluster()
        key = await env.running_machine(cluster)
        calls = len(script.calls)
        env.api.change("Machine", key, {"status": {"phase": "Provisioned"}})
        await env.quiet()
        assert len(script.calls) == calls, "a phase is for display"

        env.api.change("Machine", key, {"status": {"phase": "Running", "nodeRef": {"name": "n1"}}})
        await env.eventually("called", lambda: len(script.calls) > calls)
        machine = script.calls[-1].machine
        assert machine is not None
        assert (machine.node_name, machine.phase) == ("n1", "Running")


class TestDeletions(ScriptedMachines):
    """Deletions that wait until the infrastructure lists all existing resources."""

    @scenario
    async def test_a_deletion_knows_how_long_nothing_was_created(
        self, env: InfrastructureEnvironment, delete: ScriptFactory
    ) -> None:
        """Another manager may have created something just before this one has started.

        Proves: IM-25.
        """
        script = delete(Waiting("NotListed", requeue_after=20.0))

        def seconds() -> list[float]:
            scopes = [each for each in script.calls if isinstance(each, InfraMachineDeleteScope)]
            return [each.deletion_seconds for each in scopes]

        key = await add_machine(env)
        await env.eventually("it is provisioned", lambda: env.has_machine(key))
        env.api.remove(env.machine_kind.resource.kind, key)
        began = monotonic()
        await env.eventually("it waits", lambda: seconds() and seconds()[-1] > 35.0)
        assert seconds()[0] == 0.0
        assert seconds() == sorted(seconds())
        assert seconds()[-1] == pytest.approx(monotonic() - began, abs=1.0)

        script.calls.clear()
        await env.restart()
        await env.eventually("it waits", seconds)
        assert seconds()[0] == 0.0
        script.results = [Deleted()]
        await env.eventually("it is gone", lambda: env.is_gone(env.machine_kind, key))
