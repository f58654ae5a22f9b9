"""The owners of a pool's machines, as core and the garbage collector see them."""

from __future__ import annotations

from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.machine_pool.base import PoolMachinesConformance
from capsmith_runtime.testing.machine_pool.environment import PoolMachinesEnvironment
from tests.runtime.scenarios.providers import provider, run_with

PROVIDER = provider("pools")


@run_with("pools", "two-contracts")
class TestPoolMachineOwners(PoolMachinesConformance):
    """The owners of a pool's machines, as core and the garbage collector see them."""

    @scenario
    async def test_core_finds_the_machines_of_a_pool(self, env: PoolMachinesEnvironment) -> None:
        """Proves: MP-08, MP-09."""
        env.use_long_name()
        env.add_pool(2)
        await env.settled(2)
        pool = env.infra_pool()["metadata"]
        for machine in env.infra_machines():
            assert env.pool_labels().items() <= machine["metadata"]["labels"].items()
            (owner,) = (
                each
                for each in machine["metadata"]["ownerReferences"]
                if each["uid"] == pool["uid"]
            )
            assert "controller" not in owner

    @scenario
    async def test_owner_references_to_the_pool_have_the_stored_version(
        self, env: PoolMachinesEnvironment
    ) -> None:
        """The garbage collector cannot look up owners in a version that is no longer served.

        Proves: MP-09, CRD-16.
        """
        env.add_pool(2)
        await env.settled(2)
        before, kind = _owners(env), env.kind.machines.kind
        group = env.kind.resource.group
        for name, owners in before.items():
            old = [
                {**owner, "apiVersion": f"{group}/v0alpha1"} if _is_pool(env, owner) else owner
                for owner in owners
            ]
            assert old != owners
            key = NamespacedName(env.pool.namespace, name)
            env.api.change(kind, key, {"metadata": {"ownerReferences": old}})
        await env.restart()
        await env.eventually("it is named", lambda: _owners(env) == before)
        await env.settled(2)
        assert len(env.created()) == 2

    @scenario
    async def test_lost_owner_references_to_the_pool_come_back(
        self, env: PoolMachinesEnvironment
    ) -> None:
        """Restore the owner of each machine; a machine without it is not replaced.

        Proves: SM-11, MP-09.
        """
        env.add_pool(2)
        await env.settled(2)
        before, kind = _owners(env), env.kind.machines.kind
        for name, owners in before.items():
            kept = [owner for owner in owners if not _is_pool(env, owner)]
            key = NamespacedName(env.pool.namespace, name)
            env.api.change(kind, key, {"metadata": {"ownerReferences": kept or None}})
        await env.eventually("they are back", lambda: _sorted(env) == _ordered(before))
        await env.settled(2)
        assert _sorted(env) == _ordered(before)
        assert len(env.created()) == 2

    @scenario
    async def test_another_pool_of_the_machine_pool_is_left_alone(
        self, env: PoolMachinesEnvironment
    ) -> None:
        """Keep the Machines of the pool that a MachinePool names now, and had before.

        Core allows ``infrastructureRef`` to change, and creates Machines for both pools' machines.

        Proves: MP-08, MP-09.
        """
        env.add_pool(2)
        await env.settled(2)
        _add_second_pool(env, "p2")
        await env.eventually("both have theirs", lambda: env.joined() == 4)
        await env.quiet()
        assert len(env.created()) == 4
        env.api.remove(env.kind.resource.kind, env.pool)
        await env.eventually("the former is gone", lambda: len(env.infra_machines()) == 2)
        await env.quiet()
        assert {name.rpartition("-")[0] for name in env.names()} == {"p2"}
        assert env.joined() == 2
        assert len(env.created()) == 4

    @scenario
    async def test_a_machine_of_other_infrastructure_is_left_alone(
        self, env: PoolMachinesEnvironment
    ) -> None:
        """Delete an infrastructure machine, but no Machine that only has its name.

        Proves: MP-09, MP-10.
        """
        env.machines.hold_machines = True
        env.add_pool(1)
        await env.eventually("it is made", lambda: len(env.infra_machines()) == 1)
        await env.quiet()
        (name,) = env.names()
        reference = {"apiGroup": "other.example.com", "kind": "OtherMachine", "name": name}
        env.api.add(
            {
                "apiVersion": f"cluster.x-k8s.io/{env.api.core_version}",
                "kind": "Machine",
                "metadata": {"namespace": env.pool.namespace, "name": name},
                "spec": {"clusterName": "other", "infrastructureRef": reference},
            }
        )
        env.scale(0)
        await env.eventually("it is gone", lambda: not env.infra_machines())
        await env.quiet()
        (machine,) = env.api.all("Machine")
        assert "deletionTimestamp" not in machine["metadata"]


def _add_second_pool(env: PoolMachinesEnvironment, name: str) -> None:
    """Add another pool like the first, and let the MachinePool name it."""
    obj = env.infra_pool()
    kept = {each: obj["metadata"][each] for each in ("namespace", "labels", "ownerReferences")}
    env.api.add({**obj, "metadata": {**kept, "name": name}, "status": {}})
    env.change_pool({"template": {"spec": {"infrastructureRef": {"name": name}}}})


def _sorted(env: PoolMachinesEnvironment) -> dict[str, list[JSON]]:
    return _ordered(_owners(env))


def _ordered(owners: dict[str, list[JSON]]) -> dict[str, list[JSON]]:
    """Return the owners of each machine by uid: their order has no meaning."""
    return {name: sorted(each, key=lambda o: str(o["uid"])) for name, each in owners.items()}


def _owners(env: PoolMachinesEnvironment) -> dict[str, list[JSON]]:
    """Return the owners of each machine, by its name."""
    found = (each["metadata"] for each in env.infra_machines())
    return {each["name"]: each.get("ownerReferences") or [] for each in found}


def _is_pool(env: PoolMachinesEnvironment, owner: JSON) -> bool:
    return bool(owner["uid"] == env.infra_pool()["metadata"]["uid"])
