"""The status reports which generation of the spec it is about, where the kind has that feature."""

from __future__ import annotations

from collections.abc import Sequence

from capsmith_runtime.contract.constants import OBSERVED_GENERATION
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.infrastructure.base import (
    InfrastructureCase,
    InfrastructureConformance,
)
from capsmith_runtime.testing.conformance.infrastructure.machine import check_requests
from capsmith_runtime.testing.infrastructure.environment import InfrastructureEnvironment
from capsmith_runtime.testing.provider import ProviderUnderTest
from tests.runtime.scenarios.providers import provider, run_with

PROVIDER = provider("everything")


@run_with("everything")
class TestObservedGeneration(InfrastructureConformance):
    """The status reports which generation of the spec it is about."""

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[InfrastructureCase]:
        """Return only kinds of machines with the feature."""
        return [
            case
            for case in super().cases(provider)
            if OBSERVED_GENERATION in case.machine_kind.features
        ]

    @scenario
    async def test_the_generation_costs_no_request(self, env: InfrastructureEnvironment) -> None:
        """Proves: CRD-14."""
        cluster = await env.running_cluster()
        key = await env.running_machine(cluster)
        assert _observes(env.core.infra_machine(key))
        written = check_requests(env, key)

        _change_generation(env, key)
        await env.eventually("observed", lambda: _observes(env.core.infra_machine(key)))
        await env.quiet()
        assert env.api.written(env.machine_kind.resource.kind, key) == [*written, "patch_status"]

    @scenario
    async def test_a_paused_machine_observes_nothing(self, env: InfrastructureEnvironment) -> None:
        """Proves: CRD-14."""
        cluster = await env.running_cluster()
        key = await env.running_machine(cluster)
        env.core.pause(cluster)
        _change_generation(env, key)
        await env.quiet()
        assert not _observes(env.core.infra_machine(key))
        env.core.pause(cluster, paused=False)
        await env.eventually("observed", lambda: _observes(env.core.infra_machine(key)))


def _observes(machine: JSON) -> bool:
    generation: int = machine["metadata"]["generation"]
    return bool(machine["status"].get(OBSERVED_GENERATION) == generation)


def _change_generation(env: InfrastructureEnvironment, key: NamespacedName) -> None:
    """Change the generation as a change of a field in the spec would."""
    generation = env.core.infra_machine(key)["metadata"]["generation"] + 1
    kind = env.machine_kind.resource.kind
    env.api.change(kind, key, {"metadata": {"generation": generation}})
