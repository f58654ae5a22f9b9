"""Control planes when something goes wrong: broken machines, moves, foreign machines."""

from __future__ import annotations

from capsmith_runtime.errors import ForbiddenError
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.kube.clock import monotonic
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.controlplane.base import ControlPlaneConformance
from capsmith_runtime.testing.conformance.controlplane.faults import _machine, _refuse_machines
from capsmith_runtime.testing.controlplane.environment import (
    CONTROL_PLANE,
    GROUP,
    NAMESPACE,
    ControlPlaneEnvironment,
    condition,
    shows,
)
from capsmith_runtime.testing.controlplane.fake_machines import INFRASTRUCTURE, crd_of
from tests.runtime.scenarios.providers import provider, run_with

PROVIDER = provider("complete")
MACHINE_CRD = NamespacedName("", f"fakemachines.{INFRASTRUCTURE}")


@run_with("complete", "control-plane", "two-contracts")
class TestControlPlaneFaults(ControlPlaneConformance):
    """Control planes when something goes wrong: broken machines, moves, foreign machines."""

    @scenario
    async def test_machines_of_other_owners_stop_the_control_plane(
        self, env: ControlPlaneEnvironment
    ) -> None:
        """Proves: CP-19."""
        await env.running(1)
        (own,) = env.api.all("Machine")
        for kind in ("FakeMachine", env.kind.bootstrap_kind):
            clone = env.api.find(kind, NamespacedName(NAMESPACE, own["metadata"]["name"]))
            assert clone is not None
            env.api.add(_copy(clone))
        env.api.add(_copy(own))
        env.change(replicas=3)
        await env.eventually("it says so", lambda: "stranger" in str(env.status()))
        await env.quiet()
        assert len(env.names()) == 2

    @scenario
    async def test_a_conflict_with_a_write_of_core_is_resolved_soon(
        self, env: ControlPlaneEnvironment
    ) -> None:
        """Write owner references again if core has written the Machine's status meanwhile.

        Proves: SM-11.
        """
        await env.running(1)
        (name,) = env.names()
        key = NamespacedName(NAMESPACE, name)
        (owner,) = _machine(env, name)["metadata"]["ownerReferences"]
        former = {**owner, "apiVersion": f"{owner['apiVersion'].partition('/')[0]}/v0"}
        conflicts = 0

        def write_status_first(verb: str, kind: str, body: JSON) -> None:
            nonlocal conflicts
            if (verb, kind) == ("patch", "Machine") and conflicts < 2:
                conflicts += 1
                node = {"nodeInfo": {"kernelVersion": f"6.{conflicts}"}}
                env.api.change("Machine", key, {"status": node})

        def has_owner() -> bool:
            return bool(_machine(env, name)["metadata"].get("ownerReferences") == [owner])

        env.api.fault = write_status_first
        began = monotonic()
        for references in ([former], None):
            conflicts = 0
            env.api.change("Machine", key, {"metadata": {"ownerReferences": references}})
            await env.eventually("it has its owner", has_owner)
            assert conflicts == 2
        # The next resync would resolve it too, but only after minutes.
        assert monotonic() - began < 30

    @scenario
    async def test_a_replacement_during_a_rollout_counts_as_a_retry(
        self, env: ControlPlaneEnvironment
    ) -> None:
        """Even if the Machines that are left suffice, a rollout's next Machine is a replacement.

        Proves: CP-31.
        """
        await env.running(3)
        before, broken = set(env.names()), ""
        env.machines.hold = True
        env.change_machines()

        def is_replaced() -> bool:
            return len(env.names()) == 4 and broken not in env.names()

        for retries in range(2):
            await env.eventually("another one is new", is_replaced)
            former, (broken,) = broken, set(env.names()) - before
            record = _machine(env, broken)["metadata"]["annotations"].get(
                env.annotations.remediation_for
            )
            assert (record or "").count(f'"retries":{retries - 1}') == retries, record
            assert former in (record or "")
            for condition_type in ("HealthCheckSucceeded", "OwnerRemediated"):
                env.machines.condition(broken, condition_type, "False")
        env.machines.hold = False
        await env.eventually("all are new", lambda: not before & set(env.names()))
        await env.settled(3)
        assert env.annotations.remediation_in_progress not in env.obj()["metadata"]["annotations"]

    @scenario
    async def test_a_template_that_is_not_there_is_told(self, env: ControlPlaneEnvironment) -> None:
        env.add_control_plane(1, machineTemplate=env.from_template("t9"))
        await env.eventually("it says so", lambda: "t9 does not exist" in str(env.status()))
        assert env.names() == []

    @scenario
    async def test_a_missing_permission_is_reported(self, env: ControlPlaneEnvironment) -> None:
        """The manager may not delete the kind of machines that a user's template names."""

        def forbid(verb: str, kind: str, body: JSON) -> None:
            if (verb, kind) in (("create", "Machine"), ("delete", "FakeMachine")):
                raise ForbiddenError("no role allows it")

        env.api.fault = forbid
        env.add_control_plane(1)
        await env.eventually("it says so", lambda: "no role allows it" in str(env.status()))
        kind = env.kind.resource.kind
        env.api.remove(kind, CONTROL_PLANE)
        await env.eventually(
            "it says why its deletion does not end",
            lambda: "no role allows it" in str(condition(env.obj(), "Deleting")),
        )
        env.api.fault = None
        await env.eventually("it is gone", lambda: env.api.find(kind, CONTROL_PLANE) is None)

    @scenario
    async def test_a_deletion_waits_for_a_contract_version(
        self, env: ControlPlaneEnvironment
    ) -> None:
        """Without a version, the infrastructure of an unfinished Machine cannot be deleted.

        Proves: CP-34, GEN-01.
        """
        env.api.fault = _refuse_machines
        env.add_control_plane(1)
        await env.eventually("it was begun", lambda: env.api.all(env.kind.bootstrap_kind))
        env.api.remove("CustomResourceDefinition", MACHINE_CRD)
        kind = env.kind.resource.kind
        env.api.remove(kind, CONTROL_PLANE)
        await env.eventually(
            "it says why its deletion does not end",
            lambda: "contract label" in str(condition(env.obj(), "Deleting")),
        )
        env.api.add(crd_of(INFRASTRUCTURE, "FakeMachine"))
        await env.eventually("it is gone", lambda: env.api.find(kind, CONTROL_PLANE) is None)
        assert not env.api.all("FakeMachine")

    @scenario
    async def test_workers_are_deleted_before_the_control_plane(
        self, env: ControlPlaneEnvironment
    ) -> None:
        """Proves: CP-34."""
        await env.running(1)
        worker = NamespacedName(NAMESPACE, "worker")
        env.api.add(
            {
                "apiVersion": f"{GROUP}/{env.api.core_version}",
                "kind": "Machine",
                "metadata": {"namespace": NAMESPACE, "name": worker.name, "finalizers": ["x"]},
                "spec": {"clusterName": "c1", "providerID": "x", "bootstrap": {}},
            }
        )
        kind = env.kind.resource.kind
        env.api.remove(kind, CONTROL_PLANE)
        await env.eventually("it says so", lambda: "worker" in str(env.status()))
        assert len(env.names()) == 2
        env.api.change("Machine", worker, {"metadata": {"finalizers": None}})
        env.api.remove("Machine", worker)
        await env.eventually("it is gone", lambda: env.api.find(kind, CONTROL_PLANE) is None)

    @scenario
    async def test_other_conditions_of_machines_are_kept(
        self, env: ControlPlaneEnvironment
    ) -> None:
        """Proves: CP-32, ST-10."""
        await env.running(1)
        (name,) = env.names()
        env.machines.condition(name, "Foreign", "True")
        env.change(version="v1.35.0")
        await env.eventually(
            "it is outdated", lambda: shows(_machine(env, name), "UpToDate", "False")
        )
        assert shows(_machine(env, name), "Foreign", "True")


def _copy(obj: JSON) -> JSON:
    metadata = {
        "namespace": NAMESPACE,
        "name": "stranger",
        "labels": obj["metadata"]["labels"],
        "ownerReferences": [
            {"kind": "Other", "apiVersion": "v1", "name": "x", "uid": "x", "controller": True}
        ],
        "finalizers": ["machine.cluster.x-k8s.io"],
    }
    return {**obj, "metadata": metadata}
