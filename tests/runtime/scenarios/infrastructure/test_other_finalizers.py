"""Machines and clusters that finalizers of other controllers keep."""

from __future__ import annotations

from capsmith_runtime.kube.client import key_of
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.infrastructure.base import InfrastructureConformance
from capsmith_runtime.testing.infrastructure.environment import InfrastructureEnvironment
from tests.runtime.scenarios.kept_objects import check_condition, delete_but_keep
from tests.runtime.scenarios.providers import provider, run_with

PROVIDER = provider("acme")


@run_with("acme", "homelab-v1beta1")
class TestOtherFinalizers(InfrastructureConformance):
    """Objects without infrastructure are not ready, even if they stay."""

    @scenario
    async def test_a_deleted_machine_is_not_ready(self, env: InfrastructureEnvironment) -> None:
        key = await env.running_machine(await env.running_cluster())
        check_condition(
            await delete_but_keep(env, env.machine_kind.resource.kind, key), "Ready", "False"
        )
        assert not env.infrastructure.servers()

    @scenario
    async def test_a_deleted_cluster_is_not_ready(self, env: InfrastructureEnvironment) -> None:
        key = key_of(env.core.infra_cluster(await env.running_cluster()))
        check_condition(
            await delete_but_keep(env, env.cluster_kind.resource.kind, key), "Ready", "False"
        )
        assert not env.infrastructure.clusters()
