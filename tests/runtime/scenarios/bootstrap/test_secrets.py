"""Secrets with the name of a configuration: its own, that of a former one, and foreign ones."""

from __future__ import annotations

from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.testing.bootstrap.environment import CLUSTER_NAME, BootstrapEnvironment
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.bootstrap.base import BootstrapConformance
from capsmith_runtime.testing.conformance.bootstrap.faults import _replace
from tests.runtime.scenarios.providers import provider, run_with

PROVIDER = provider("bootstrap")


@run_with("bootstrap", "complete", "two-contracts")
class TestBootstrapSecrets(BootstrapConformance):
    """Secrets with the name of a configuration: its own, that of a former one, and foreign ones."""

    @scenario
    async def test_the_secret_of_a_former_configuration_is_not_used(
        self, env: BootstrapEnvironment
    ) -> None:
        """It has the same name, but belongs to another machine; garbage collection removes it.

        Proves: BC-06.
        """
        _, key = await env.running_worker()
        former = env.secret(key)
        await env.stop()
        _replace(env, key)
        env.start()
        await env.has_data(key)
        secret = env.secret(key)
        assert former is not None
        assert secret is not None
        assert secret["metadata"]["uid"] != former["metadata"]["uid"]

    @scenario
    async def test_a_secret_of_another_owner_is_kept(self, env: BootstrapEnvironment) -> None:
        """Proves: BC-06."""
        cluster = env.add_cluster()
        env.control_plane_is_initialized(cluster)
        name = {"namespace": cluster.namespace, "name": "m1"}
        theirs = {"apiVersion": "v1", "kind": "Secret", "metadata": name, "data": {"value": "eA=="}}
        env.api.add(theirs)
        key = env.add_machine(cluster, "m1")
        await env.says(key, "DataSecretNameTaken")
        await env.quiet()
        secret = env.secret(key)
        assert secret is not None
        assert secret["data"] == {"value": "eA=="}
        assert "ownerReferences" not in secret["metadata"]
        assert not env.created(key)

    @scenario
    async def test_owner_references_have_the_stored_version(
        self, env: BootstrapEnvironment
    ) -> None:
        """The garbage collector cannot look up owners in a version that is no longer served.

        Proves: BC-06, CRD-16.
        """
        _, key = await env.running_worker()
        secret = env.secret(key)
        assert secret is not None
        (now,) = secret["metadata"]["ownerReferences"]
        group = now["apiVersion"].partition("/")[0]
        stranger = {"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "theirs"}
        before = {**now, "apiVersion": f"{group}/v0alpha1"}
        await env.stop()
        owners = {"metadata": {"ownerReferences": [stranger, before]}}
        env.api.change("Secret", key, owners)
        env.api.requests.clear()
        env.start()
        await env.quiet()
        secret = env.secret(key)
        assert secret is not None
        assert secret["metadata"]["ownerReferences"] == [stranger, now]
        assert env.api.requests.count(("get", "Secret", key)) == 1

    @scenario
    async def test_a_lost_owner_reference_comes_back(self, env: BootstrapEnvironment) -> None:
        """Restore the owner after a restart, and after a pause in which a backup was restored.

        Proves: SM-11, BC-06.
        """
        cluster, key = await env.running_worker()
        env.adopt("Machine", key)
        secret = env.secret(key)
        assert secret is not None
        before, lost = secret["metadata"]["ownerReferences"], {
            "metadata": {"ownerReferences": None}
        }
        await env.stop()
        env.api.change("Secret", key, lost)
        env.start()
        await env.eventually("it is owned", lambda: _owners(env, key) == before)
        env.pause(cluster)
        await env.quiet()
        env.api.change("Secret", key, lost)
        await env.quiet()
        assert not _owners(env, key)
        env.pause(cluster, paused=False)
        await env.eventually("it is owned", lambda: _owners(env, key) == before)

    @scenario
    async def test_data_without_owner_are_adopted(self, env: BootstrapEnvironment) -> None:
        """Proves: BC-06, BC-12."""
        cluster = env.add_cluster()
        env.control_plane_is_initialized(cluster)
        labels = {CLUSTER_NAME: cluster.name}
        prepared = {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "cluster.x-k8s.io/secret",
            "metadata": {"namespace": cluster.namespace, "name": "m1", "labels": labels},
            "data": {"value": "eA=="},
        }
        env.api.add(prepared)
        key = env.add_machine(cluster, "m1")
        await env.has_data(key)
        assert env.data(key) == b"x"
        secret = env.secret(key)
        assert secret is not None
        (owner,) = secret["metadata"]["ownerReferences"]
        assert owner["uid"] == env.config(key)["metadata"]["uid"]


def _owners(env: BootstrapEnvironment, key: NamespacedName) -> list[JSON]:
    secret = env.secret(key) or {"metadata": {}}
    owners: list[JSON] = secret["metadata"].get("ownerReferences") or []
    return owners
