"""Infrastructure clusters that list their machines, for example as members of a load balancer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from capsmith_runtime.contract import constants
from capsmith_runtime.infrastructure import (
    Address,
    Endpoint,
    InfraClusterScope,
    InfraClusterState,
    InfraMachineState,
    InfraMachineView,
    WatchedMachines,
)
from capsmith_runtime.kube.client import NamespacedName
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.infrastructure.base import InfrastructureCase
from capsmith_runtime.testing.infrastructure.environment import InfrastructureEnvironment
from tests.runtime.infrastructure import scripted_provider
from tests.runtime.infrastructure.scripted_provider import (
    MachineScope,
    ScriptedClusterReconciler,
    ScriptedMachines,
    ScriptFactory,
)

PROVIDER = scripted_provider.PROVIDER
ENDPOINT = Endpoint("10.0.0.100", 6443)


class Members:
    """What the reconciler of the cluster saw, call by call."""

    def __init__(self) -> None:
        self.calls: list[tuple[InfraMachineView, ...]] = []

    @property
    def names(self) -> list[str]:
        return [machine.name for machine in self.calls[-1]]


@pytest.fixture
def members(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Members:
    """Let the cluster's reconciler watch the machines that the test's parameter names."""
    made = Members()

    def reconcile_normal(self: object, cluster: InfraClusterScope[Any]) -> InfraClusterState:
        made.calls.append(cluster.machines)
        return InfraClusterState(control_plane_endpoint=ENDPOINT)

    watched = getattr(request, "param", WatchedMachines.ALL)
    monkeypatch.setattr(ScriptedClusterReconciler, "watched_machines", watched)
    monkeypatch.setattr(ScriptedClusterReconciler, "reconcile_normal", reconcile_normal)
    return made


def _state(machine: MachineScope) -> InfraMachineState:
    address = Address("InternalIP", f"10.0.0.{machine.name.removeprefix('m')}")
    return InfraMachineState(provider_id=f"acme://{machine.name}", addresses=[address])


def _label(env: InfrastructureEnvironment, key: NamespacedName) -> None:
    """Give a machine the label of control planes, as their providers do."""
    labels = {constants.CONTROL_PLANE_LABEL: ""}
    env.api.change(env.machine_kind.resource.kind, key, {"metadata": {"labels": labels}})


class TestScriptedMembers(ScriptedMachines):
    """The reconciler of a cluster is called when a machine comes, changes or goes."""

    @classmethod
    def cases(cls, provider: Any) -> Sequence[InfrastructureCase]:
        return super().cases(provider)[:1]

    @scenario
    async def test_machines_are_listed_with_what_their_reconcilers_returned(
        self, env: InfrastructureEnvironment, normal: ScriptFactory, members: Members
    ) -> None:
        normal(_state)
        cluster = await env.running_cluster()
        assert not members.names
        for name in ("m2", "m1"):
            await env.running_machine(cluster, name)
        await env.quiet()
        assert members.names == ["m1", "m2"]
        first = members.calls[-1][0]
        assert first.provider_id == "acme://m1"
        assert first.addresses == (Address("InternalIP", "10.0.0.1"),)
        assert first.external_id.startswith("m1.")
        assert (first.is_provisioned, first.deleting) == (True, False)
        assert first.raw_spec["size"]

    @scenario
    async def test_a_machine_in_deletion_is_listed_until_it_is_gone(
        self, env: InfrastructureEnvironment, normal: ScriptFactory, members: Members
    ) -> None:
        normal(_state)
        cluster = await env.running_cluster()
        machine = await env.running_machine(cluster, "m1")
        await env.quiet()
        calls = len(members.calls)
        env.api.remove("Machine", machine)
        env.api.remove(env.machine_kind.resource.kind, machine)
        await env.eventually("gone", lambda: env.is_gone(env.machine_kind, machine))
        await env.quiet()
        assert not members.names
        assert all(machine.deleting for seen in members.calls[calls:] for machine in seen)

    @pytest.mark.parametrize("members", [WatchedMachines.CONTROL_PLANE], indirect=True)
    @scenario
    async def test_workers_call_no_cluster_that_watches_control_planes(
        self, env: InfrastructureEnvironment, normal: ScriptFactory, members: Members
    ) -> None:
        normal(_state)
        cluster = await env.running_cluster()
        await env.quiet()
        calls = len(members.calls)
        worker = await env.running_machine(cluster, "m1")
        await env.quiet()
        assert len(members.calls) == calls
        _label(env, worker)
        await env.quiet()
        assert members.names == ["m1"]
        assert members.calls[-1][0].is_control_plane

    @pytest.mark.parametrize("members", [WatchedMachines.NONE], indirect=True)
    @scenario
    async def test_without_watched_machines_none_is_listed(
        self, env: InfrastructureEnvironment, normal: ScriptFactory, members: Members
    ) -> None:
        normal(_state)
        cluster = await env.running_cluster()
        await env.quiet()
        calls = len(members.calls)
        await env.running_machine(cluster, "m1")
        await env.quiet()
        assert len(members.calls) == calls
        assert not any(members.calls)

    @scenario
    async def test_the_condition_of_a_machine_calls_no_cluster(
        self, env: InfrastructureEnvironment, normal: ScriptFactory, members: Members
    ) -> None:
        normal(_state)
        machine = await env.running_machine(await env.running_cluster(), "m1")
        await env.quiet()
        calls = len(members.calls)
        env.api.change(env.machine_kind.resource.kind, machine, {"status": {"conditions": []}})
        await env.quiet()
        assert len(members.calls) == calls

    @scenario
    async def test_a_machine_with_a_copied_id_is_no_member(
        self, env: InfrastructureEnvironment, normal: ScriptFactory, members: Members
    ) -> None:
        """A user must not make another tenant's server a member of a load balancer."""
        normal(_state)
        cluster = await env.running_cluster()
        machine = await env.running_machine(cluster, "m1")
        provider_id = env.core.infra_machine(machine)["spec"]["providerID"]
        copy = env.core.add_machine(cluster, "m2", bootstrap=False)
        change = {"spec": {"providerID": provider_id}}
        env.api.change(env.machine_kind.resource.kind, copy, change)
        env.add_machine_without_owner(cluster, "m3", {})
        await env.quiet()
        assert members.names == ["m1"]
