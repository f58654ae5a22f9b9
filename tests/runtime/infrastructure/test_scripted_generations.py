"""The generation in the status: of a reconcile with a result, and of no other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from capsmith_runtime.contract.constants import OBSERVED_GENERATION
from capsmith_runtime.infrastructure import TerminalError, Waiting
from capsmith_runtime.infrastructure.controllers import InfrastructureControllers
from capsmith_runtime.kube.client import NamespacedName
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.infrastructure.environment import InfrastructureEnvironment
from tests.runtime.infrastructure import scripted_provider
from tests.runtime.infrastructure.scripted_provider import (
    PROVISIONED,
    ScriptedMachines,
    ScriptFactory,
    add_machine,
)

KIND = "AcmeMachine"


def _provider() -> Any:
    """The scripted provider, whose machines have the feature."""
    component = scripted_provider.COMPONENT
    (controllers,) = component.groups
    assert isinstance(controllers, InfrastructureControllers)
    (machines,) = controllers.machines
    machines = replace(machines, features=machines.features | {OBSERVED_GENERATION})
    groups = (replace(controllers, machines=(machines,)),)
    components = {"infrastructure": replace(component, groups=groups)}
    return replace(scripted_provider.PROVIDER, components=components)


PROVIDER = _provider()


def _observed(env: InfrastructureEnvironment, key: NamespacedName) -> Any:
    return env.core.infra_machine(key).get("status", {}).get(OBSERVED_GENERATION)


def _change(env: InfrastructureEnvironment, key: NamespacedName, size: str) -> int:
    changed = env.api.change(KIND, key, {"spec": {"size": size}})
    generation: int = changed["metadata"]["generation"]
    return generation


class TestGenerations(ScriptedMachines):
    """Which reconciles report the generation."""

    @pytest.fixture(autouse=True)
    def declared(self, env: InfrastructureEnvironment) -> None:
        """Let the API server know the field, unlike the CRDs of the scripted provider."""
        status = env.manifests.schema(KIND, "v1alpha1")["properties"]["status"]
        status["properties"][OBSERVED_GENERATION] = {"type": "integer"}

    @scenario
    async def test_errors_observe_nothing(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        """Proves: CRD-14."""
        script = normal(PROVISIONED)
        key = await add_machine(env)
        # The provider id in the spec was the second generation.
        await env.eventually("observed", lambda: _observed(env, key) == 2)
        assert env.api.written(KIND, key) == ["patch", "patch", "patch_status"]

        script.results = [RuntimeError("the cloud is down")]
        generation, calls = _change(env, key, "huge"), len(script.calls)
        await env.eventually("called", lambda: len(script.calls) > calls)
        await env.quiet()
        assert _observed(env, key) == generation - 1

        script.results = [PROVISIONED]
        await env.eventually("observed", lambda: _observed(env, key) == generation)

    @pytest.mark.parametrize("result", [Waiting("Resizing", ""), TerminalError("Broken")])
    @scenario
    async def test_waits_and_terminal_failures_are_results(
        self, env: InfrastructureEnvironment, normal: ScriptFactory, result: Any
    ) -> None:
        script = normal(PROVISIONED)
        key = await add_machine(env)
        await env.eventually("observed", lambda: _observed(env, key) == 2)
        script.results = [result]
        generation = _change(env, key, "huge")
        await env.eventually("observed", lambda: _observed(env, key) == generation)

    @scenario
    async def test_a_change_during_a_reconcile_is_not_observed_by_it(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        """Proves: CRD-14."""
        seen: list[tuple[str, Any]] = []

        def change(machine: Any) -> Any:
            if not seen:
                _change(env, NamespacedName(machine.namespace, machine.name), "huge")
            seen.append((machine.spec.size, _observed(env, key)))
            return PROVISIONED

        normal(change)
        key = await add_machine(env)
        await env.eventually("observed", lambda: _observed(env, key) == 3)
        assert seen[0][0] != "huge"
        assert all(observed in (None, 2) for size, observed in seen[:2])
        assert seen[-1][0] == "huge"
