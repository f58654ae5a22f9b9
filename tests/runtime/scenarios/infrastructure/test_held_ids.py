"""Objects that name what belongs to another object: the author's code is not called for them."""

from __future__ import annotations

from capsmith_runtime.contract import external_id
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.infrastructure.base import InfrastructureConformance
from capsmith_runtime.testing.environment import condition
from capsmith_runtime.testing.infrastructure.environment import InfrastructureEnvironment
from tests.runtime.scenarios.providers import provider, run_with

PROVIDER = provider("acme")
OTHER = "tenant-b"


@run_with("acme", "everything", "homelab-v1beta1")
class TestCopiedIds(InfrastructureConformance):
    """Ids that a user has copied from another object."""

    @scenario
    async def test_the_provider_id_of_another_machine(self, env: InfrastructureEnvironment) -> None:
        cluster = await env.running_cluster()
        key = await env.running_machine(cluster)
        servers = env.infrastructure.servers()
        spec = {"providerID": env.core.infra_machine(key)["spec"]["providerID"]}
        copy = env.add_machine_without_owner(cluster, "copy", spec)
        await _deletes_nothing(env, copy, "ProviderIDTaken")
        assert env.infrastructure.servers() == servers
        await _ends_with_the_holder(env, key, copy)

    @scenario
    async def test_the_external_id_of_another_machine(self, env: InfrastructureEnvironment) -> None:
        cluster = await env.running_cluster()
        key = await env.running_machine(cluster)
        servers = env.infrastructure.servers()
        copied = _external_id(env.core.infra_machine(key))
        copy = env.add_machine_without_owner(
            cluster, key.name, {}, namespace=OTHER, copied_id=copied
        )
        await _deletes_nothing(env, copy, "ExternalIDTaken")
        assert env.infrastructure.servers() == servers
        await _ends_with_the_holder(env, key, copy)

    @scenario
    async def test_the_external_id_of_a_cluster(self, env: InfrastructureEnvironment) -> None:
        """A copy that has owners creates nothing either, and reports why."""
        cluster = await env.running_cluster()
        clusters = env.infrastructure.clusters()
        original = env.core.infra_cluster(cluster)
        metadata = {
            name: original["metadata"][name]
            for name in ("name", "labels", "annotations", "finalizers")
            if name in original["metadata"]
        }
        copy = NamespacedName(OTHER, original["metadata"]["name"])
        copied = {name: original[name] for name in ("apiVersion", "kind", "spec")}
        env.api.add({**copied, "metadata": {**metadata, "namespace": OTHER}})
        kind = env.cluster_kind.resource.kind
        await env.quiet()
        env.api.remove(kind, copy)
        await env.eventually(
            "it says so", lambda: _ready(env, kind, copy) == ("False", "ExternalIDTaken")
        )
        assert env.infrastructure.clusters() == clusters

    @scenario
    async def test_what_was_moved_keeps_its_ids(self, env: InfrastructureEnvironment) -> None:
        """After a move all uids are new and the status is empty: ids differ from the uids."""
        cluster = await env.running_cluster()
        key = await env.running_machine(cluster)
        servers, kind = env.infrastructure.servers(), env.machine_kind.resource.kind
        await env.stop()
        moved = env.core.infra_machine(key)
        metadata = {k: v for k, v in moved["metadata"].items() if k != "resourceVersion"}
        env.api.change(kind, key, {"metadata": {"finalizers": None}})
        env.api.remove(kind, key)
        spec = moved["spec"]
        head = {name: moved[name] for name in ("apiVersion", "kind")}
        env.api.add({**head, "metadata": metadata, "spec": spec})
        copy = env.add_machine_without_owner(cluster, "copy", {"providerID": spec["providerID"]})
        later = {"creationTimestamp": "2999-01-01T00:00:00Z"}
        env.api.change(kind, copy, {"metadata": later})
        env.start()
        await env.eventually("it is reported again", lambda: env.has_machine(key))
        await _deletes_nothing(env, copy, "ProviderIDTaken")
        assert env.infrastructure.servers() == servers


def _external_id(obj: JSON) -> str:
    found = external_id.stored(obj, obj["apiVersion"].partition("/")[0])
    assert found is not None
    return found


def _ready(env: InfrastructureEnvironment, kind: str, key: NamespacedName) -> tuple[str, str]:
    obj = env.api.find(kind, key)
    assert obj is not None, "it is gone"
    return condition(obj, "Ready")


async def _deletes_nothing(
    env: InfrastructureEnvironment, copy: NamespacedName, reason: str
) -> None:
    """Delete a copy; it stays, and says why."""
    kind = env.machine_kind.resource.kind
    await env.quiet()
    env.api.remove(kind, copy)
    await env.eventually("it says so", lambda: _ready(env, kind, copy) == ("False", reason))


async def _ends_with_the_holder(
    env: InfrastructureEnvironment, key: NamespacedName, copy: NamespacedName
) -> None:
    """Delete the machine that has the server: then the copy holds nothing, and goes too."""
    kind = env.machine_kind
    env.api.remove(kind.resource.kind, key)
    await env.eventually("the server is gone", lambda: env.is_gone(kind, key))
    assert env.infrastructure.servers() == []
    await env.eventually("the copy is gone", lambda: env.api.find(kind.resource.kind, copy) is None)
