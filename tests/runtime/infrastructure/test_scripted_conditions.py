"""Conditions that a reconciler shows, and those that it no longer returns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from capsmith_runtime.errors import create_api_error
from capsmith_runtime.infrastructure import (
    Condition,
    InfraClusterScope,
    InfraClusterState,
    TerminalError,
    Waiting,
)
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.testing.conformance.base import scenario
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
OLD = Condition(type="DisksReady", status=True, reason="Ready")
NEW = Condition(type="VolumesReady", status=True, reason="Ready")
SHOWS_OLD = replace(PROVISIONED, conditions=[OLD])
SHOWS_NEW = replace(PROVISIONED, conditions=[NEW])
FOREIGN = {
    "type": "Foreign",
    "status": "True",
    "reason": "Inspected",
    "message": "",
    "lastTransitionTime": "2030-01-01T00:00:00Z",
}


def _types(obj: JSON) -> set[str]:
    return {entry["type"] for entry in obj.get("status", {}).get("conditions", ())}


def _machine_types(env: InfrastructureEnvironment, key: NamespacedName) -> set[str]:
    return _types(env.core.infra_machine(key))


class TestAuthorConditions(ScriptedMachines):
    """What is written, removed and left to others."""

    @scenario
    async def test_a_renamed_condition_is_removed_after_a_restart(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        """Proves: ST-10."""
        script = normal(SHOWS_OLD)
        key = await add_machine(env)
        await env.eventually("shown", lambda: "DisksReady" in _machine_types(env, key))
        kind = env.machine_kind.resource.kind
        assert env.api.written(kind, key) == ["patch", "patch", "patch_status"]
        conditions = env.core.infra_machine(key)["status"]["conditions"]
        env.api.change(kind, key, {"status": {"conditions": [*conditions, FOREIGN]}})

        script.results = [SHOWS_NEW]
        await env.restart()
        await env.eventually("renamed", lambda: "VolumesReady" in _machine_types(env, key))
        assert _machine_types(env, key) == {"Ready", "Paused", "VolumesReady", "Foreign"}

        script.results = [PROVISIONED]
        await env.restart()
        await env.eventually("removed", lambda: "VolumesReady" not in _machine_types(env, key))
        await env.quiet()
        assert _machine_types(env, key) == {"Ready", "Paused", "Foreign"}
        annotations = env.core.infra_machine(key)["metadata"]["annotations"]
        assert not [name for name in annotations if name.endswith("/conditions")]

    @pytest.mark.parametrize("between", [Waiting("Rebooting", ""), TerminalError("Broken")])
    @scenario
    async def test_conditions_stay_while_there_is_no_state(
        self, env: InfrastructureEnvironment, normal: ScriptFactory, between: Any
    ) -> None:
        script = normal(SHOWS_OLD)
        key = await add_machine(env)
        await env.eventually("shown", lambda: "DisksReady" in _machine_types(env, key))
        script.results = [between]
        calls = len(script.calls)
        await env.restart()
        await env.eventually("called", lambda: len(script.calls) > calls)
        await env.quiet()
        assert "DisksReady" in _machine_types(env, key)

    @pytest.mark.parametrize("lost", ["patch", "patch_status"])
    @scenario
    async def test_a_crash_while_a_condition_is_renamed_leaves_none(
        self, env: InfrastructureEnvironment, normal: ScriptFactory, lost: str
    ) -> None:
        script = normal(SHOWS_OLD)
        key = await add_machine(env)
        await env.eventually("shown", lambda: "DisksReady" in _machine_types(env, key))
        failures: list[str] = []

        def fail(verb: str, kind: str, body: JSON) -> None:
            if kind == env.machine_kind.resource.kind and verb == lost:
                failures.append(verb)
                raise create_api_error(500, "InternalError", "not stored")

        script.results = [SHOWS_NEW]
        await env.kill()
        env.api.fault = fail
        env.start()
        await env.eventually("failed", lambda: failures)
        await env.kill()
        env.api.fault = None
        env.start()
        await env.eventually("renamed", lambda: "VolumesReady" in _machine_types(env, key))
        assert "DisksReady" not in _machine_types(env, key)

    @scenario
    async def test_conditions_of_a_cluster(
        self, env: InfrastructureEnvironment, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        shown: list[Condition] = [OLD, NEW]

        def reconcile(self: object, cluster: InfraClusterScope[Any]) -> InfraClusterState:
            return InfraClusterState(conditions=tuple(shown))

        monkeypatch.setattr(ScriptedClusterReconciler, "reconcile_normal", reconcile)
        key = env.core.add_cluster()
        await env.cluster_is_provisioned(key)
        assert {"DisksReady", "VolumesReady"} <= _types(env.core.infra_cluster(key))
        shown.remove(OLD)
        await env.restart()
        await env.eventually(
            "removed", lambda: "DisksReady" not in _types(env.core.infra_cluster(key))
        )
        assert "VolumesReady" in _types(env.core.infra_cluster(key))
