"""Control planes whose manager crashes between any two requests, or has outdated caches."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from capsmith_runtime.kube.client import NamespacedName, ResourceType
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.controlplane.base import ControlPlaneConformance
from capsmith_runtime.testing.conformance.controlplane.faults import _refuse_machines
from capsmith_runtime.testing.controlplane.environment import (
    CONTROL_PLANE,
    NAMESPACE,
    ControlPlaneEnvironment,
)
from tests.runtime.scenarios.providers import provider, run_with

PROVIDER = provider("complete")


@run_with("complete", "control-plane", "two-contracts")
class TestControlPlaneCrashes(ControlPlaneConformance):
    """Control planes whose manager crashes between any two requests, or has outdated caches."""

    @scenario
    async def test_a_machine_missing_from_the_cache_is_not_created_again(
        self, env: ControlPlaneEnvironment, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As after a change of leaders: the former one created it, and its event is still to come.

        Proves: CP-19, SM-09.
        """
        await env.running(1)
        open_gate, watch = asyncio.Event(), env.api.watch

        async def late(resource: ResourceType, *args: Any, **more: Any) -> Any:
            async for event in watch(resource, *args, **more):
                if resource.kind == "Machine":
                    await open_gate.wait()
                yield event

        monkeypatch.setattr(env.api, "watch", late)
        await env.restart()
        await env.quiet()
        made = _by_another_leader(env)
        env.change(replicas=2)
        await env.eventually("it looks again and again", lambda: _lists(env) > 2)
        assert len(env.names()) == 2
        open_gate.set()
        await env.settled(2)
        assert made in env.names()

    @scenario
    async def test_unfinished_machines_are_deleted_with_the_control_plane(
        self, env: ControlPlaneEnvironment
    ) -> None:
        """Proves: CP-34."""
        env.api.fault = _refuse_machines
        env.add_control_plane(1)
        await env.eventually("it was begun", lambda: env.api.all(env.kind.bootstrap_kind))
        kind = env.kind.resource.kind
        env.api.remove(kind, CONTROL_PLANE)
        await env.eventually("it is gone", lambda: env.api.find(kind, CONTROL_PLANE) is None)
        assert not env.api.all("FakeMachine")
        assert not env.api.all(env.kind.bootstrap_kind)


def _by_another_leader(env: ControlPlaneEnvironment) -> str:
    (own,) = env.api.all("Machine")
    name = "c1-cp-other"
    for kind in ("FakeMachine", env.kind.bootstrap_kind, "Machine"):
        obj = env.api.find(kind, NamespacedName(NAMESPACE, own["metadata"]["name"]))
        assert obj is not None
        obj["metadata"]["name"] = name
        for gone in ("finalizers", "uid", "resourceVersion"):
            obj["metadata"].pop(gone, None)
        obj.get("spec", {}).pop("providerID", None)
        obj.pop("status", None)
        env.api.add(obj)
    return name


def _lists(env: ControlPlaneEnvironment) -> int:
    return env.api.lists["Machine"]
