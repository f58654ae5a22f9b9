"""The workload cluster's client that hooks of a control plane receive, in a running manager."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import Any

import pytest

from capsmith_runtime.controlplane import ControlPlaneHealth, ControlPlaneMember, ControlPlaneScope
from capsmith_runtime.errors import CallEndedError
from capsmith_runtime.reconcile.kubernetes_client import KubernetesClient
from capsmith_runtime.testing import controlplane as testing
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.controlplane.base import ControlPlaneConformance, Override
from capsmith_runtime.testing.controlplane.environment import ControlPlaneEnvironment
from capsmith_runtime.testing.kubernetes import fake_workload_client
from tests.runtime.controlplane import scripted_provider
from tests.runtime.controlplane.scripted_provider import KeelControlPlaneSpec

PROVIDER = scripted_provider.PROVIDER


class TestScriptedWorkload(ControlPlaneConformance):
    @scenario
    async def test_each_hook_reads_and_writes_nodes(
        self, env: ControlPlaneEnvironment, override: Override
    ) -> None:
        """Hooks of the same reconcile have connected clients; they are ``def`` or ``async def``."""
        clients: list[KubernetesClient] = []

        def health(self: Any, control_plane: ControlPlaneScope[Any]) -> ControlPlaneHealth:
            clients.append(control_plane.workload_client)
            assert len(control_plane.workload_client.list("v1", "Node")) >= 1
            return ControlPlaneHealth()

        async def after_add(self: Any, member: ControlPlaneMember[Any]) -> None:
            client, name = member.control_plane.workload_client, member.machine.node_name
            body = {"metadata": {"labels": {"joined": ""}}}
            await client.patch_async("v1", "Node", str(name), body)

        override(env, health=health, after_add=after_add)
        await env.running(3)
        nodes = env.workload.all("Node")
        assert [each["metadata"]["labels"].get("joined") for each in nodes] == [""] * 3
        with pytest.raises(CallEndedError):
            await clients[-1].get_async("v1", "Node", "any")

    @scenario
    async def test_a_name_of_no_machine_is_logged(
        self,
        env: ControlPlaneEnvironment,
        override: Override,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        """Health by names of Nodes has no effect, which the log says."""

        def health(self: Any, control_plane: ControlPlaneScope[Any]) -> ControlPlaneHealth:
            nodes = [str(machine.node_name) for machine in control_plane.machines]
            return ControlPlaneHealth(unhealthy=dict.fromkeys(nodes, "no vote"))

        override(env, health=health)
        with caplog.at_level(logging.WARNING):
            await env.running(1)
        assert "health reports a name that no Machine of the control plane has" in caplog.text


def test_a_unit_test_passes_nodes() -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}
    spec = KeelControlPlaneSpec()
    scope = replace(testing.control_plane(spec), workload_client=fake_workload_client(node))
    assert scope.workload_client.get("v1", "Node", "a") is not None
    assert asyncio.run(scope.workload_client.get_async("v1", "Node", "b")) is None
