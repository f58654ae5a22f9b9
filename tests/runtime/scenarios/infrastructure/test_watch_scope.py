"""A manager that is responsible for only some of the objects, by namespace or by label."""

from __future__ import annotations

from capsmith_runtime.kube.client import NamespacedName
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.infrastructure.base import InfrastructureConformance
from capsmith_runtime.testing.infrastructure.environment import InfrastructureEnvironment
from capsmith_runtime.testing.infrastructure.fake_core import NAMESPACE
from tests.runtime.scenarios.providers import provider, run_with

PROVIDER = provider("acme")
FILTER = "cluster.x-k8s.io/watch-filter"


@run_with("acme", "homelab-v1beta1")
class TestWatchScope(InfrastructureConformance):
    """A manager that is responsible for only some of the objects, by namespace or by label."""

    @scenario
    async def test_only_objects_with_the_label_are_reconciled(
        self, env: InfrastructureEnvironment
    ) -> None:
        """Proves: MG-01."""
        await env.stop()
        theirs = env.core.add_cluster("theirs")
        ours = env.core.add_cluster("ours")
        _label(env, theirs, "another")
        _label(env, ours, "mine")
        env.start(watch_filter="mine")
        # Identities may be shared: they are read without the label, and not written.
        await env.eventually("ours is there", lambda: env.has_cluster(ours))
        await env.quiet()
        assert _touched(env) == {ours}
        assert len(env.infrastructure.clusters()) == 1

        _label(env, theirs, "mine")
        await env.eventually("it is there too", lambda: env.has_cluster(theirs))

    @scenario
    async def test_only_objects_of_the_namespace_are_reconciled(
        self, env: InfrastructureEnvironment
    ) -> None:
        """Proves: CC-33."""
        await env.stop()
        key = env.core.add_cluster()
        env.start(namespaces=("elsewhere",))
        await env.quiet()
        assert key not in _touched(env)
        assert env.infrastructure.clusters() == []

        # Identities have no namespace: they are found from anywhere.  A namespace that does not
        # exist is no error.
        await env.stop()
        env.start(namespaces=("other", NAMESPACE))
        await env.eventually("it is there", lambda: env.has_cluster(key))

    @scenario
    async def test_objects_in_excluded_namespaces_are_not_reconciled(
        self, env: InfrastructureEnvironment
    ) -> None:
        """Proves: CC-33."""
        await env.stop()
        key = env.core.add_cluster()
        env.start(excluded_namespaces=("other", NAMESPACE))
        await env.quiet()
        assert key not in _touched(env)
        assert env.infrastructure.clusters() == []

        await env.stop()
        env.start(excluded_namespaces=("other",))
        await env.eventually("it is there", lambda: env.has_cluster(key))


def _label(env: InfrastructureEnvironment, key: NamespacedName, value: str) -> None:
    labels = {"metadata": {"labels": {FILTER: value}}}
    env.api.change(env.cluster_kind.resource.kind, key, labels)


def _touched(env: InfrastructureEnvironment) -> set[NamespacedName]:
    return {key for verb, kind, key in env.api.requests if verb != "get"}
