"""Machines whose servers no longer exist."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from capsmith_runtime.infrastructure import Deleted, InfraMachineState, Terminated
from capsmith_runtime.infrastructure.terminations import (
    HOLD_SECONDS,
    WINDOW_SECONDS,
    MachineGroup,
    TerminationTracker,
)
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.infrastructure.environment import InfrastructureEnvironment
from tests.runtime.infrastructure import scripted_provider
from tests.runtime.infrastructure.scripted_provider import (
    PROVISIONED,
    MachineScope,
    ScriptedMachines,
    ScriptFactory,
    add_machine,
    ready_condition,
)

PROVIDER = scripted_provider.PROVIDER
UP: InfraMachineState = replace(PROVISIONED, requeue_after=0.05)
TERMINATED = Terminated("ServerNotFound", "acme://1 no longer exists")


class TestTerminatedResults(ScriptedMachines):
    """What the result Terminated becomes in the object."""

    @scenario
    async def test_it_stays_provisioned_with_its_provider_id(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        """Proves: IM-01, IM-03, IM-10."""
        script = normal(UP, TERMINATED)
        key = await add_machine(env)
        expected = ("False", "ServerNotFound")
        await env.eventually("reported", lambda: ready_condition(env, key) == expected)
        obj = env.core.infra_machine(key)
        assert env.core.provisioned(obj)
        assert obj["spec"]["providerID"] == "acme://1"
        assert obj["status"]["addresses"]
        await env.eventually("an event", lambda: env.api.all("Event"))
        (event,) = env.api.all("Event")
        assert (event["type"], event["reason"]) == ("Warning", "ServerNotFound")

        await env.quiet()
        calls = len(script.calls)
        await asyncio.sleep(100)
        assert len(script.calls) == calls, "it is called without a reason"
        assert script.calls[-1].provider_id == "acme://1"

    @scenario
    async def test_a_server_that_is_found_again_is_ready(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        script = normal(UP, TERMINATED)
        key = await add_machine(env)
        await env.eventually("reported", lambda: ready_condition(env, key)[0] == "False")
        script.results = [UP]
        await env.restart()
        await env.eventually("ready", lambda: ready_condition(env, key) == ("True", "Ready"))

    @scenario
    async def test_it_can_be_deleted(
        self, env: InfrastructureEnvironment, normal: ScriptFactory, delete: ScriptFactory
    ) -> None:
        """Proves: IM-25."""
        normal(UP, TERMINATED)
        delete(Deleted())
        key = await add_machine(env)
        await env.eventually("reported", lambda: ready_condition(env, key)[0] == "False")
        env.api.remove(env.machine_kind.resource.kind, key)
        await env.eventually("deleted", lambda: env.is_gone(env.machine_kind, key))

    @scenario
    async def test_a_single_empty_answer_is_not_acted_upon(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        script = normal(UP, TERMINATED, UP)
        key = await add_machine(env)
        await env.eventually("it is looked at again", lambda: len(script.calls) >= 4)
        await env.quiet()
        assert ready_condition(env, key) == ("True", "Ready")
        assert not env.api.all("Event")

    @scenario
    async def test_two_empty_answers_with_a_good_one_between_are_not_acted_upon(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        script = normal(UP, TERMINATED, UP, TERMINATED, UP)
        key = await add_machine(env)
        await env.eventually("it is looked at again", lambda: len(script.calls) >= 6)
        await env.quiet()
        assert ready_condition(env, key) == ("True", "Ready")

    @scenario
    async def test_a_machine_that_was_given_up_needs_no_second_look_after_a_restart(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        script = normal(UP, TERMINATED)
        key = await add_machine(env)
        await env.eventually("reported", lambda: ready_condition(env, key)[0] == "False")
        await env.quiet()
        calls = len(script.calls)
        await env.restart()
        await env.eventually("it is looked at", lambda: len(script.calls) > calls)
        await asyncio.sleep(100)
        assert len(script.calls) == calls + 1
        assert ready_condition(env, key) == ("False", "ServerNotFound")

    @scenario
    async def test_a_conflict_with_a_write_of_core_delays_it_only_briefly(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        """The machine must not count as a second one of a cluster that may lose only one."""
        normal(UP, TERMINATED)
        key = await add_machine(env)
        kind = env.machine_kind.resource.kind
        conflicts: list[str] = []

        def write_labels_first(verb: str, of: str, body: JSON) -> None:
            if (verb, of) == ("patch_status", kind) and "ServerNotFound" in str(body):
                if not conflicts:
                    env.api.change(kind, key, {"metadata": {"labels": {"of-core": "x"}}})
                conflicts.append(verb)

        env.api.fault = write_labels_first
        expected = ("False", "ServerNotFound")
        await env.eventually("reported", lambda: ready_condition(env, key) == expected)
        assert len(conflicts) == 2


class TestMassTerminations(ScriptedMachines):
    """Many machines of a cluster whose servers disappear together."""

    @scenario
    async def test_no_machine_is_given_up_while_the_whole_cluster_disappears(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        """A cloud that answers with an empty list must not replace all machines."""
        keys = await _add_machines(env, normal)
        normal(TERMINATED)
        await env.restart()
        held = ("True", "TerminationHeld")
        await env.eventually("held", lambda: all(ready_condition(env, key) == held for key in keys))
        assert "terminations_held 4.0" in env.metrics.render().decode()
        events = {(event["type"], event["reason"]) for event in env.api.all("Event")}
        assert events == {("Warning", "TerminationHeld")}

        # A manager without memory of the first answers gives up no machine either.
        await env.restart()
        await _after(300, env)
        assert [ready_condition(env, key) for key in keys] == [held] * len(keys)

    @scenario
    async def test_held_machines_are_ready_when_their_servers_are_found_again(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        keys = await _add_machines(env, normal)
        script = normal(TERMINATED)
        await env.restart()
        await env.eventually("held", lambda: _are_all(env, keys, "TerminationHeld"))
        script.results = [_up]
        await _after(300, env)
        assert _are_all(env, keys, "Ready")
        assert "terminations_held 0.0" in env.metrics.render().decode()

    @scenario
    async def test_a_third_of_a_cluster_is_given_up(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        """One of four machines may disappear; the others are not affected."""
        keys = await _add_machines(env, normal)
        normal(lambda machine: TERMINATED if machine.name == "m0" else _up(machine))
        await env.restart()
        await env.eventually("given up", lambda: ready_condition(env, keys[0])[0] == "False")
        assert _are_all(env, keys[1:], "Ready")

    @scenario
    async def test_a_machine_that_was_given_up_counts_after_a_restart(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        keys = await _add_machines(env, normal)
        normal(lambda machine: TERMINATED if machine.name == "m0" else _up(machine))
        await env.restart()
        await env.eventually("given up", lambda: ready_condition(env, keys[0])[0] == "False")
        normal(lambda machine: TERMINATED if machine.name in ("m0", "m1") else _up(machine))
        await env.restart()
        await _after(100, env)
        assert ready_condition(env, keys[1]) == ("True", "TerminationHeld")


def _up(machine: MachineScope) -> InfraMachineState:
    return replace(UP, provider_id=f"acme://{machine.name}", requeue_after=None)


async def _add_machines(
    env: InfrastructureEnvironment, normal: ScriptFactory
) -> list[NamespacedName]:
    """Add four provisioned machines of one cluster."""
    normal(_up)
    cluster = await env.running_cluster()
    return [await env.running_machine(cluster, f"m{number}") for number in range(4)]


def _are_all(env: InfrastructureEnvironment, keys: list[NamespacedName], reason: str) -> bool:
    return all(ready_condition(env, key)[1] == reason for key in keys)


async def _after(seconds: float, env: InfrastructureEnvironment) -> None:
    """Let virtual time pass, until the manager is quiet again."""
    await asyncio.sleep(seconds)
    await env.quiet()


class TestTerminationTracker:
    """Which terminated machines are given up, and when."""

    def test_what_stays_terminated_for_an_hour_is_given_up(self) -> None:
        now, tracker = _tracker()
        group = [MachineGroup("Cluster default/c", 4)]
        for machine in range(4):
            tracker.seconds_to_second_look(machine, group)
        now[0] = 30.0
        assert all(tracker.find_excess(machine, group) for machine in range(4))
        now[0] += HOLD_SECONDS
        assert [tracker.find_excess(machine, group) for machine in range(4)] == [None] * 4

    def test_the_rest_of_a_third_may_be_given_up_after_others_recover(self) -> None:
        now, tracker = _tracker()
        group = [MachineGroup("Cluster default/c", 6)]
        for machine in range(4):
            tracker.seconds_to_second_look(machine, group)
        now[0] = 30.0
        assert tracker.find_excess(0, group) == group[0]
        assert tracker.count_held() == 1
        tracker.forget(2)
        tracker.forget(3)
        assert tracker.find_excess(0, group) is None
        assert tracker.count_held() == 0

    def test_machines_that_were_given_up_count_for_the_window(self) -> None:
        now, tracker = _tracker()
        group = [MachineGroup("Cluster default/c", 3)]
        tracker.seconds_to_second_look("a", group)
        tracker.give_up("a", group)
        now[0] = WINDOW_SECONDS - 1
        tracker.seconds_to_second_look("b", group)
        assert tracker.find_excess("b", group) == group[0]
        now[0] = WINDOW_SECONDS
        assert tracker.find_excess("b", group) is None

    def test_machines_that_another_manager_gave_up_count_once_for_the_rest_of_the_window(
        self,
    ) -> None:
        now, tracker = _tracker()
        group = [MachineGroup("Cluster default/c", 6)]
        tracker.give_up("old", group, seconds_ago=WINDOW_SECONDS)
        for _ in range(3):
            tracker.give_up("recent", group, seconds_ago=WINDOW_SECONDS - 60)
        tracker.seconds_to_second_look("b", group)
        assert tracker.find_excess("b", group) is None
        tracker.seconds_to_second_look("c", group)
        assert tracker.find_excess("c", group) == group[0]
        now[0] = 60.0
        assert tracker.find_excess("c", group) is None

    def test_one_machine_of_a_small_cluster_may_be_given_up(self) -> None:
        _, tracker = _tracker()
        for machines in (1, 2):
            group = [MachineGroup(f"Cluster default/{machines}", machines)]
            tracker.seconds_to_second_look(machines, group)
            assert tracker.find_excess(machines, group) is None

    def test_clusters_whose_machines_were_given_up_long_ago_are_forgotten(self) -> None:
        """The clusters may have been deleted since then."""
        now, tracker = _tracker()
        for number in range(100):
            group = [MachineGroup(f"Cluster default/{number}", 3)]
            for _ in range(5):  # a machine that was given up is reconciled again and again
                tracker.give_up(number, group)
            now[0] += WINDOW_SECONDS / 10
        assert len(tracker._given_up) <= 10
        assert len(tracker._ends) <= 10

    def test_a_machine_that_is_given_up_again_counts_for_another_window(self) -> None:
        now, tracker = _tracker()
        group = [MachineGroup("Cluster default/c", 3)]
        for _ in range(3):
            tracker.give_up("a", group)
            now[0] += WINDOW_SECONDS - 1
        tracker.seconds_to_second_look("b", group)
        assert tracker.find_excess("b", group) == group[0]

    def test_an_identity_counts_over_all_its_clusters(self) -> None:
        _, tracker = _tracker()
        identity = MachineGroup("identity AcmeIdentity/a", 9)
        groups = [[MachineGroup(f"Cluster default/{n}", 1), identity] for n in range(9)]
        for machine in range(4):
            tracker.seconds_to_second_look(machine, groups[machine])
        assert tracker.find_excess(0, groups[0]) == identity


def _tracker() -> tuple[list[float], TerminationTracker]:
    now = [0.0]
    return now, TerminationTracker(30.0, lambda: now[0])
