"""Machine templates report the capacity of a machine, if the kind has that feature."""

from __future__ import annotations

from collections.abc import Sequence

from capsmith_runtime.kube.client import NamespacedName
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.infrastructure.base import (
    InfrastructureCase,
    InfrastructureConformance,
)
from capsmith_runtime.testing.infrastructure.environment import InfrastructureEnvironment
from capsmith_runtime.testing.infrastructure.fake_core import NAMESPACE
from capsmith_runtime.testing.provider import ProviderUnderTest


class TestMachineTemplates(InfrastructureConformance):
    """Machine templates report the capacity of a machine, if the kind has that feature."""

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[InfrastructureCase]:
        """Return only the cases whose templates report the capacity of a machine."""
        return [case for case in super().cases(provider) if case.machine_kind.template is not None]

    @scenario
    async def test_a_template_reports_its_capacity(self, env: InfrastructureEnvironment) -> None:
        """A template reports the capacity of its machines in its status.

        Credentials may be required, so the test makes the Cluster an owner of the template, as core
        does.

        Proves: IM-16.
        """
        kind = env.machine_kind
        assert kind.template is not None
        cluster = await env.running_cluster()
        owner = env.api.find("Cluster", cluster)
        assert owner is not None
        key = NamespacedName(NAMESPACE, "t1")
        reference = {
            "apiVersion": owner["apiVersion"],
            "kind": "Cluster",
            "name": cluster.name,
            "uid": owner["metadata"]["uid"],
        }
        template = {
            "apiVersion": kind.template.api_version,
            "kind": kind.template.kind,
            "metadata": {
                "namespace": key.namespace,
                "name": key.name,
                "ownerReferences": [reference],
            },
            "spec": {"template": {"spec": env.manifests.sample_spec(kind.resource.kind)}},
        }
        env.api.add(template)
        name = kind.template.kind
        await env.eventually(
            "it says so",
            lambda: (env.api.find(name, key) or {}).get("status", {}).get("capacity"),
        )
        await env.quiet()
        assert env.api.written(name, key) == ["patch_status"]
