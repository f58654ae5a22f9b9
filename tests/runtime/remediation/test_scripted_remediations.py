"""Which Machines remediations are about, and how they handle the author's results."""

from __future__ import annotations

from typing import Any

import pytest

from capsmith_runtime.errors import create_api_error
from capsmith_runtime.kube.client import JSON, NamespacedName, key_of
from capsmith_runtime.remediation import (
    Deleted,
    RemediationDeleteScope,
    RemediationFailed,
    RemediationState,
    Waiting,
)
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.environment import condition
from capsmith_runtime.testing.remediation.environment import RemediationEnvironment
from tests.runtime.remediation import scripted_remediations
from tests.runtime.remediation.scripted_remediations import (
    ScriptedConformance,
    ScriptedReconciler,
    condition_of,
    script,
)
from tests.runtime.resource.scripted_resources import CLUSTER, MACHINE

PROVIDER = scripted_remediations.PROVIDER
scripts = scripted_remediations.scripts
EXTERNALLY, OWNER = "ExternallyRemediated", "OwnerRemediated"


def _waits(env: RemediationEnvironment, key: NamespacedName, reason: str) -> bool:
    return condition(env.remediation(key), "Ready") == ("False", reason)


class TestSubjects(ScriptedConformance):
    """The Machine that a remediation is about."""

    @scenario
    async def test_the_author_gets_the_machine_with_its_infrastructure(
        self, env: RemediationEnvironment
    ) -> None:
        """The credentials are those of the infrastructure machine.

        Proves: ER-07.
        """
        machine = await env.unhealthy_machine()
        env.add(machine)
        await env.is_complete(machine)
        scope = ScriptedReconciler.calls[-1]
        own = env.core.infra_machine(machine)["metadata"]
        (external_id,) = (
            value for key, value in own["annotations"].items() if key.endswith("/external-id")
        )
        assert scope.infra_machine.external_id == external_id != scope.external_id
        assert (scope.machine.name, scope.cluster.name) == (machine.name, "c1")
        assert scope.infra_cluster is not None
        assert set(scope.credentials) == {"username", "password"}
        assert scope.spec.timeout_seconds == 600

    @pytest.mark.parametrize("lacking", ["owner", "uid", "name"])
    @scenario
    async def test_only_the_machine_of_its_name_that_owns_it_is_remediated(
        self, env: RemediationEnvironment, lacking: str
    ) -> None:
        """Proves: ER-07."""
        machine = await env.unhealthy_machine()
        await env.stop()
        env.add(machine)
        obj, key = env.remediation(machine), machine
        env.delete(machine)
        if lacking == "owner":
            del obj["metadata"]["ownerReferences"]
        elif lacking == "uid":
            obj["metadata"]["ownerReferences"][0]["uid"] = "of-a-former-machine"
        else:
            key = NamespacedName(machine.namespace, "another")
            obj["metadata"]["name"] = key.name
        env.api.add(obj)
        env.start()
        await env.eventually("it says so", lambda: _waits(env, key, "MachineNotFound"))
        await env.quiet()
        assert ScriptedReconciler.calls == []
        assert "finalizers" not in env.remediation(key)["metadata"]

        env.delete(key)
        await env.is_deleted(key)
        assert ScriptedReconciler.deletions == []

    @scenario
    async def test_it_waits_for_an_infrastructure_machine_of_this_provider(
        self, env: RemediationEnvironment
    ) -> None:
        machine = await env.unhealthy_machine()
        other = {"kind": "OtherMachine", "apiGroup": "infrastructure.other.example.com"}
        env.api.change("Machine", machine, {"spec": {"infrastructureRef": other}})
        env.add(machine)
        await env.eventually("it says so", lambda: _waits(env, machine, "InfraMachineNotFound"))
        assert ScriptedReconciler.calls == []

    @scenario
    async def test_a_machine_with_the_ids_of_another_is_left_alone(
        self, env: RemediationEnvironment
    ) -> None:
        """A user who copies ids must not restart another's server."""
        machine = await env.unhealthy_machine()
        second = env.core.add_machine(NamespacedName(machine.namespace, "c1"), "m2")
        await env.eventually("both are provisioned", lambda: env.has_machine(second))
        await env.quiet()
        await env.stop()
        taken = env.core.infra_machine(machine)["spec"]["providerID"]
        env.api.change(MACHINE, second, {"spec": {"providerID": taken}, "status": None})
        env.add(second)
        env.start()
        await env.eventually("it says so", lambda: _waits(env, second, "ProviderIDTaken"))
        assert ScriptedReconciler.calls == []

    @scenario
    async def test_a_machine_in_deletion_is_left_alone(self, env: RemediationEnvironment) -> None:
        machine = await env.unhealthy_machine()
        env.api.change("Machine", machine, {"metadata": {"finalizers": ["machine.example.com"]}})
        env.api.remove("Machine", machine)
        env.add(machine)
        await env.eventually("it says so", lambda: _waits(env, machine, "MachineDeleting"))
        assert ScriptedReconciler.calls == []

    @scenario
    async def test_it_is_paused_with_its_cluster(self, env: RemediationEnvironment) -> None:
        """Neither created nor deleted while the Cluster is paused.

        Proves: SM-01, ST-08.
        """
        machine = await env.unhealthy_machine()
        cluster = NamespacedName(machine.namespace, "c1")
        env.core.pause(cluster)
        await env.quiet()
        env.add(machine)
        paused = ("True", "Paused")
        await env.eventually(
            "it says so", lambda: condition(env.remediation(machine), "Paused") == paused
        )
        await env.quiet()
        assert ScriptedReconciler.calls == []

        env.core.pause(cluster, False)
        await env.is_complete(machine)
        env.core.pause(cluster)
        env.delete(machine)
        await env.quiet()
        assert ScriptedReconciler.deletions == []
        env.core.pause(cluster, False)
        await env.is_deleted(machine)
        assert len(ScriptedReconciler.deletions) == 1


class TestResults(ScriptedConformance):
    """How the author's results are handled."""

    @scenario
    async def test_a_remediation_in_progress_shows_in_its_machine(
        self, env: RemediationEnvironment, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Core's conditions stay, and the condition goes with the remediation.

        Proves: ER-07.
        """
        states = [RemediationState(ready=False, requeue_after=5), RemediationState(message="well")]
        script(monkeypatch, lambda scope: states.pop(0) if len(states) > 1 else states[0])
        machine = await env.unhealthy_machine()
        env.add(machine)
        await env.eventually(
            "it is in progress",
            lambda: condition_of(env, machine, EXTERNALLY).get("reason") == "RemediationInProgress",
        )
        await env.eventually(
            "it is complete", lambda: condition_of(env, machine, EXTERNALLY)["status"] == "True"
        )
        shown = condition_of(env, machine, EXTERNALLY)
        assert (shown["reason"], shown["message"]) == ("RemediationCompleted", "well")
        assert condition_of(env, machine, "HealthCheckSucceeded")["status"] == "False"
        assert condition_of(env, machine, OWNER) == {}

        env.delete(machine)
        await env.is_deleted(machine)
        assert condition_of(env, machine, EXTERNALLY) == {}
        assert condition_of(env, machine, "HealthCheckSucceeded") != {}

    @scenario
    async def test_a_failed_remediation_leaves_the_machine_to_its_owner(
        self, env: RemediationEnvironment, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Proves: ER-07."""
        script(monkeypatch, lambda scope: RemediationFailed("NoPower", "the rack is dark"))
        machine = await env.unhealthy_machine()
        env.add(machine)
        await env.eventually(
            "its owner is asked", lambda: condition_of(env, machine, OWNER).get("status") == "False"
        )
        asked = condition_of(env, machine, OWNER)
        assert asked["reason"] == "WaitingForRemediation"
        assert asked["message"] == "NoPower: the rack is dark"
        assert condition_of(env, machine, EXTERNALLY)["reason"] == "NoPower"
        assert condition_of(env, machine, "HealthCheckSucceeded")["status"] == "False"
        assert condition(env.remediation(machine), "Ready") == ("False", "NoPower")
        assert env.found(machine) is not None, "only core deletes it"

    @scenario
    async def test_core_marks_the_machine_first(
        self, env: RemediationEnvironment, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A condition that is written earlier would make core's write fail, which is not repeated.

        Proves: ER-07.
        """
        script(monkeypatch, lambda scope: RemediationFailed("NoPower"))
        machine = await env.unhealthy_machine()
        env.add(machine, is_marked=False)
        await env.eventually("it has failed", lambda: _waits(env, machine, "NoPower"))
        await env.quiet()
        assert "conditions" not in env.core_machine(machine).get("status", {})
        env.mark(machine, healthy=False)
        await env.eventually("its owner is asked", lambda: condition_of(env, machine, OWNER))

    @scenario
    async def test_an_owner_that_remediates_keeps_its_condition(
        self, env: RemediationEnvironment, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        script(monkeypatch, lambda scope: RemediationFailed("NoPower"))
        machine = await env.unhealthy_machine()
        deferred = {"type": OWNER, "status": "False", "reason": "RemediationDeferred"}
        env.api.change("Machine", machine, {"status": {"conditions": [deferred]}})
        env.add(machine)
        await env.eventually(
            "it is shown", lambda: condition_of(env, machine, EXTERNALLY)["reason"] == "NoPower"
        )
        assert condition_of(env, machine, OWNER) == deferred

    @scenario
    async def test_a_machine_that_core_writes_at_the_same_time_is_written_again(
        self, env: RemediationEnvironment, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        refused: list[str] = []

        def refuse(verb: str, kind: str, body: JSON) -> None:
            if (verb, kind) == ("patch_status", "Machine") and len(refused) < 3:
                refused.append(verb)
                raise create_api_error(409, "Conflict", "core was faster")

        script(monkeypatch, lambda scope: RemediationFailed("NoPower"))
        machine = await env.unhealthy_machine()
        env.api.fault = refuse
        env.add(machine)
        await env.eventually("its owner is asked", lambda: condition_of(env, machine, OWNER))
        assert len(refused) == 3

    @scenario
    async def test_a_wrong_result_is_an_error(
        self, env: RemediationEnvironment, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        script(monkeypatch, lambda scope: None)
        machine = await env.unhealthy_machine()
        env.add(machine)
        await env.eventually("it says so", lambda: _waits(env, machine, "InvalidResult"))


class TestDeletions(ScriptedConformance):
    """Remediations that are deleted together with everything else."""

    @scenario
    async def test_the_infrastructure_cluster_waits_for_them(
        self, env: RemediationEnvironment, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The garbage collector deletes them after their Machines, with credentials.

        Proves: SM-08.
        """
        machine = await env.unhealthy_machine()
        cluster = NamespacedName(machine.namespace, "c1")
        env.add(machine)
        await env.is_complete(machine)
        monkeypatch.setattr(
            ScriptedReconciler, "delete", staticmethod(lambda scope: Waiting("Undoing", "", None))
        )
        for kind, key in ((MACHINE, machine), ("Machine", machine), (CLUSTER, cluster)):
            env.api.remove(kind, key)
        env.delete(machine)
        await env.eventually("it is deleting", lambda: ScriptedReconciler.deletions)
        await env.quiet()
        assert env.api.find(CLUSTER, cluster) is not None

        monkeypatch.setattr(ScriptedReconciler, "delete", staticmethod(lambda scope: Deleted()))
        env.change(machine, {"metadata": {"labels": {"example.com/again": "now"}}})
        await env.is_deleted(machine)
        await env.eventually("so is it", lambda: env.api.find(CLUSTER, cluster) is None)
        last = ScriptedReconciler.deletions[-1]
        assert (last.machine, last.infra_machine) == (None, None)
        assert set(last.credentials) == {"username", "password"}

    @scenario
    async def test_the_recorded_identity_is_enough(self, env: RemediationEnvironment) -> None:
        """Even if a user removes the infrastructure cluster by force.

        Proves: SM-08.
        """
        machine = await env.unhealthy_machine()
        cluster = NamespacedName(machine.namespace, "c1")
        env.add(machine)
        await env.is_complete(machine)
        await env.quiet()
        await env.stop()
        env.api.change(MACHINE, machine, {"metadata": {"finalizers": None}})
        env.api.change(CLUSTER, cluster, {"metadata": {"finalizers": None}})
        for kind, key in ((MACHINE, machine), ("Machine", machine), (CLUSTER, cluster)):
            env.api.remove(kind, key)
        env.api.remove("Cluster", cluster)
        env.delete(machine)
        env.start()
        await env.is_deleted(machine)
        (last,) = ScriptedReconciler.deletions
        assert (last.cluster, last.infra_cluster) == (None, None)
        assert set(last.credentials) == {"username", "password"}

    @scenario
    async def test_credentials_that_return_end_the_wait(
        self, env: RemediationEnvironment, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def undo(scope: RemediationDeleteScope[Any]) -> Deleted:
            assert scope.credentials["username"]
            return Deleted()

        monkeypatch.setattr(ScriptedReconciler, "delete", staticmethod(undo))
        machine = await env.unhealthy_machine()
        cluster = NamespacedName(machine.namespace, "c1")
        env.add(machine)
        await env.is_complete(machine)
        await env.quiet()
        await env.stop()
        (secret,) = (each for each in env.api.all("Secret") if "username" in each.get("data", {}))
        gone = (
            (MACHINE, machine),
            ("Machine", machine),
            (CLUSTER, cluster),
            ("Secret", key_of(secret)),
        )
        for kind, key in gone:
            env.api.change(kind, key, {"metadata": {"finalizers": None}})
            env.api.remove(kind, key)
        env.api.remove("Cluster", cluster)
        env.delete(machine)
        env.start()
        await env.eventually("it waits", lambda: _waits(env, machine, "SecretNotFound"))
        await env.quiet()
        env.api.add(secret)
        await env.is_deleted(machine)
