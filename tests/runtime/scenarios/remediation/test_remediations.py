"""What a remediation tells core and clusterctl, with the author's code of an example."""

from __future__ import annotations

from capsmith_runtime.kube.client import NamespacedName
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.remediation.base import RemediationConformance
from capsmith_runtime.testing.environment import condition
from capsmith_runtime.testing.provider import RemovesServers
from capsmith_runtime.testing.remediation.environment import RemediationEnvironment
from tests.runtime.scenarios.providers import provider, run_with

PROVIDER = provider("everything")


def _shown(env: RemediationEnvironment, machine: NamespacedName, name: str) -> str:
    """Return the status of a Machine's condition, or an empty string."""
    return condition(env.core_machine(machine), name)[0]


@run_with("everything")
class TestRemediations(RemediationConformance):
    """What core and clusterctl see of a remediation."""

    @scenario
    async def test_its_machine_shows_it_as_long_as_it_exists(
        self, env: RemediationEnvironment
    ) -> None:
        """Proves: ER-07."""
        machine = await env.unhealthy_machine()
        env.add(machine)
        await env.eventually(
            "it is shown", lambda: _shown(env, machine, "ExternallyRemediated") == "True"
        )
        assert _shown(env, machine, "OwnerRemediated") == ""
        env.delete(machine)
        await env.is_deleted(machine)
        assert _shown(env, machine, "ExternallyRemediated") == ""

    @scenario
    async def test_a_machine_without_server_is_left_to_its_owner(
        self, env: RemediationEnvironment
    ) -> None:
        """Proves: ER-07."""
        machine = await env.unhealthy_machine()
        double = env.infrastructure
        assert isinstance(double, RemovesServers)
        double.remove_server(*double.servers())
        env.add(machine)
        await env.eventually(
            "its owner is asked", lambda: _shown(env, machine, "OwnerRemediated") == "False"
        )
        assert env.carried_out() == []
        assert env.found(machine) is not None, "only core deletes it"

    @scenario
    async def test_clusterctl_moves_templates_without_owners(
        self, env: RemediationEnvironment
    ) -> None:
        """A MachineHealthCheck does not own the template that it names.

        Proves: MV-02.
        """
        labels = env.manifests.crd(f"{env.kind.resource.kind}Template")["metadata"]["labels"]
        assert "clusterctl.cluster.x-k8s.io/move" in labels
