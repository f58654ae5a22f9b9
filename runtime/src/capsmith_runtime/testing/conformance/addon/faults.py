"""Clusters that fail, and managers that crash: no other cluster may suffer, nothing may be left."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from capsmith_runtime.errors import create_api_error
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.testing.addon.environment import SELECTED, AddonEnvironment
from capsmith_runtime.testing.conformance.addon.base import AddonConformance
from capsmith_runtime.testing.conformance.base import scenario

WRITES = ("apply", "delete")


class TestAddonFaults(AddonConformance):
    """Clusters that fail, and managers that crash."""

    @scenario
    async def test_a_cluster_that_fails_is_reported(self, env: AddonEnvironment) -> None:
        """An add-on is not ready on a cluster whose API server fails or cannot be reached.

        Let the errors of ``workload`` pass: the call is repeated, and other clusters are not
        concerned.

        Proves: AD-03, MG-12.
        """
        for name in ("c1", "c2", "c3"):
            env.add_cluster(name, SELECTED)
        env.workloads.unreachable.add("c1")

        def refuse(cluster: str, verb: str, kind: str) -> None:
            if cluster == "c2":
                raise create_api_error(500, "InternalError", "etcd has no leader")

        env.workloads.before = refuse
        key = env.add_addon()
        await env.eventually("c3 has it", lambda: _ready(env, key) == {"c3"} and env.on("c3"))
        await env.eventually("the others are reported", lambda: len(env.clusters(key)) == 3)
        await env.quiet()
        assert _ready(env, key) == {"c3"}
        env.workloads.unreachable.clear()
        env.workloads.before = lambda cluster, verb, kind: None
        await env.installed(key, "c1", "c2", "c3")

    @scenario
    async def test_a_cluster_that_hangs_delays_no_other(self, env: AddonEnvironment) -> None:
        """Calls for other clusters do not wait for a call that does not return.

        Proves: MG-12.
        """
        env.workloads.hanging.add("c1")
        for name in ("c1", "c2", "c3"):
            env.add_cluster(name, SELECTED)
        key = env.add_addon()
        await env.eventually("the others have it", lambda: _ready(env, key) == {"c2", "c3"})
        assert env.on("c2")
        assert env.on("c3")
        env.workloads.hanging.clear()
        await env.installed(key, "c1", "c2", "c3")

    @scenario
    async def test_a_cluster_that_fails_keeps_a_deleted_add_on(self, env: AddonEnvironment) -> None:
        """An add-on that cannot be removed from a cluster stays, and is removed from all others.

        Proves: SM-08.
        """
        for name in ("c1", "c2"):
            env.add_cluster(name, SELECTED)
        key = env.add_addon()
        await env.installed(key, "c1", "c2")
        env.workloads.unreachable.add("c1")
        env.delete(key)
        await env.eventually("c2 has lost it", lambda: not env.on("c2"))
        await env.quiet()
        assert not (env.is_gone(key) and env.on("c1")), "gone before it is removed"

        env.workloads.unreachable.clear()
        await env.goes(key)
        assert env.on("c1") == []

    @pytest.mark.parametrize("arrives", [True, False], ids=["after", "before"])
    @scenario
    async def test_a_manager_may_crash_at_any_write(
        self, env: AddonEnvironment, arrives: bool
    ) -> None:
        """If a manager crashes at any write, everything is installed once, and later removed.

        The test makes managers crash at each kind of write, to the management cluster and to the
        workload cluster.

        Proves: SM-08, SM-09.
        """
        env.add_cluster("c1", SELECTED)
        key = env.add_addon()
        await env.installed(key, "c1")
        undisturbed = env.on("c1")
        env.delete(key)
        await env.goes(key)

        crash = _Crash(env, arrives)
        key = env.add_addon()
        while not await crash.or_until(lambda: _ready(env, key) == {"c1"}):
            await env.restart()
        await env.installed(key, "c1")
        assert env.on("c1") == undisturbed

        env.delete(key)
        while not await crash.or_until(lambda: env.is_gone(key)):
            await env.restart()
        assert env.on("c1") == []


def _ready(env: AddonEnvironment, key: NamespacedName) -> set[str]:
    return {name for name, (ready, _) in env.clusters(key).items() if ready}


class _Crash:
    """Stops the manager once at each kind of write, before it arrives or before its response."""

    def __init__(self, env: AddonEnvironment, arrives: bool) -> None:
        self._env = env
        self._arrives = arrives
        self._seen: set[tuple[str, ...]] = set()
        self._happened = False
        env.api.fault = self._on_management
        if arrives:
            env.workloads.after = self._on_workload
        else:
            env.workloads.before = self._on_workload

    async def or_until(self, holds: Callable[[], bool]) -> bool:
        """Wait until ``holds`` returns true, or return False if the manager has to be killed."""
        await self._env.eventually("the next write, or the end", lambda: self._happened or holds())
        happened, self._happened = self._happened, False
        return not happened

    def _on_management(self, verb: str, kind: str, body: JSON) -> None:
        if kind == self._env.kind.resource.kind:
            write = (verb, *sorted(body), *sorted(body.get("metadata", {})))
            self._strike(write, fails=not self._arrives)

    def _on_workload(self, cluster: str, verb: str, kind: str) -> None:
        if verb in WRITES:
            self._strike((verb, kind), fails=True)

    def _strike(self, write: tuple[str, ...], *, fails: bool) -> None:
        if write in self._seen:
            return
        self._seen.add(write)
        self._happened = True
        if fails:
            raise create_api_error(500, "InternalError", "the connection was lost")
