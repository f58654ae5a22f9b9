"""All objects are deleted at the same time, as by Argo CD or when their namespace is deleted."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.infrastructure.base import InfrastructureConformance
from capsmith_runtime.testing.infrastructure.environment import InfrastructureEnvironment
from capsmith_runtime.testing.provider import list_clusters

FOREGROUND = "foregroundDeletion"
_ORDERS = (
    (0, 1, 2, 3),
    (0, 3, 2, 1),
    (1, 3, 0, 2),
    (2, 1, 0, 3),
    (2, 3, 0, 1),
    (3, 1, 2, 0),
)
"""Orders in which to delete the four objects; any three of them occur in every order.

The API server receives all deletions before any reconciler runs, so the order only decides which
reconciler starts first. All 24 orders would take four times as long and show nothing more.
"""

_Named = tuple[str, NamespacedName]


class TestDeletionOrder(InfrastructureConformance):
    """All of a cluster's objects are deleted together, and no infrastructure is left behind."""

    @scenario
    async def test_everything_is_deleted_in_any_order(self, env: InfrastructureEnvironment) -> None:
        """All objects are deleted together, in any order, and no infrastructure is left.

        Proves: IC-20, IM-25, SM-08.
        """
        for number, order in enumerate(_ORDERS):
            objects = await _create(env, number)
            for index in order:
                env.api.remove(*objects[index])
            await _wait_until_gone(env, objects)

    @scenario
    async def test_everything_is_deleted_in_the_foreground(
        self, env: InfrastructureEnvironment
    ) -> None:
        """Foreground deletion removes all objects, in any order, and leaves no infrastructure.

        Proves: IC-20, IM-25, SM-08.
        """
        for number, order in enumerate(_ORDERS):
            objects = await _create(env, number)
            for index in order:
                kind, key = objects[index]
                finalizers = [*_finalizers(env, kind, key), FOREGROUND]
                env.api.change(kind, key, {"metadata": {"finalizers": finalizers}})
                env.api.remove(kind, key)
            # The garbage collector releases an owner after its dependents.
            for dependent in (3, 1, 2, 0):
                kind, key = objects[dependent]
                await env.eventually(
                    f"{kind} is left to the garbage collector",
                    partial(_has_only_foreground, env, kind, key),
                )
                env.api.change(kind, key, {"metadata": {"finalizers": None}})
            await _wait_until_gone(env, objects)


async def _create(env: InfrastructureEnvironment, number: int) -> Sequence[_Named]:
    """Create a cluster with a machine; return Cluster, Machine, and the provider's objects."""
    cluster = env.core.add_cluster(f"c{number}")
    await env.cluster_is_provisioned(cluster)
    env.core.infrastructure_is_ready(cluster)
    machine = await env.running_machine(cluster, f"m{number}")
    return (
        ("Cluster", cluster),
        ("Machine", machine),
        (env.cluster_kind.resource.kind, cluster),
        (env.machine_kind.resource.kind, machine),
    )


async def _wait_until_gone(env: InfrastructureEnvironment, objects: Sequence[_Named]) -> None:
    for kind, key in objects:
        await env.eventually(f"{kind} is gone", partial(_has_vanished, env, kind, key))
    assert env.infrastructure.servers() == []
    assert list_clusters(env.infrastructure) == []


def _has_vanished(env: InfrastructureEnvironment, kind: str, key: NamespacedName) -> bool:
    return env.api.find(kind, key) is None


def _has_only_foreground(env: InfrastructureEnvironment, kind: str, key: NamespacedName) -> bool:
    return _finalizers(env, kind, key) == [FOREGROUND]


def _finalizers(env: InfrastructureEnvironment, kind: str, key: NamespacedName) -> list[str]:
    found: JSON = env.api.find(kind, key) or {"metadata": {}}
    return list(found["metadata"].get("finalizers") or ())
