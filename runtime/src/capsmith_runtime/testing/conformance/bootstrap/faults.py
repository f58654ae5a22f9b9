"""Bootstrap data during pauses, moves and crashes: no machine ever gets two sets of data."""

from __future__ import annotations

import pytest

from capsmith_runtime.errors import create_api_error
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.testing.bootstrap.environment import BootstrapEnvironment, reference_to
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.bootstrap.base import BootstrapConformance

CREATIONS = ("create", "apply")
MOVE_LABELS = ("clusterctl.cluster.x-k8s.io/move", "clusterctl.cluster.x-k8s.io/move-hierarchy")


def _has_owner(obj: JSON) -> bool:
    metadata = obj["metadata"]
    is_moved = any(label in (metadata.get("labels") or {}) for label in MOVE_LABELS)
    return is_moved or bool(metadata.get("ownerReferences"))


class TestBootstrapFaults(BootstrapConformance):
    """Bootstrap data during pauses, moves and crashes: no machine ever gets two sets of data."""

    @scenario
    async def test_nothing_is_created_while_paused(self, env: BootstrapEnvironment) -> None:
        """While its Cluster is paused, a machine gets no Secret and takes no lock.

        The configuration reports the pause, and the data are created afterwards.

        Proves: SM-01, ST-08.
        """
        cluster = env.add_cluster()
        env.pause(cluster)
        key = env.add_machine(cluster, "cp1", control_plane=True)
        paused = ("True", "Paused")
        await env.eventually("it says so", lambda: env.shows(env.config(key), "Paused", *paused))
        await env.quiet()
        assert env.secret(key) is None
        assert env.lock(cluster) is None

        env.pause(cluster, False)
        await env.has_data(key)

    @scenario
    async def test_a_lost_status_is_restored_from_the_secret(
        self, env: BootstrapEnvironment
    ) -> None:
        """A status that was lost is restored from the Secret, and no new data are created.

        The machine is already running, so it must not get a second set of data.

        Proves: BC-05, MV-08, ST-11.
        """
        cluster = env.add_cluster()
        first = env.add_machine(cluster, "cp1", control_plane=True)
        await env.has_data(first)
        env.control_plane_is_initialized(cluster)
        worker = env.add_machine(cluster, "m1")
        await env.has_data(worker)
        for key in (first, worker):
            env.adopt("Machine", key)
        await env.quiet()
        secrets = {key: env.secret(key) for key in (first, worker)}

        await env.stop()
        for key in (first, worker):
            env.api.change(env.kind.resource.kind, key, {"status": None})
        # In the target cluster of a move, core detects existing objects again.
        env.api.change("Cluster", cluster, {"status": None})
        env.start()
        for key in (first, worker):
            await env.has_data(key)
        await env.quiet()
        assert {key: env.secret(key) for key in (first, worker)} == secrets
        assert env.lock(cluster) is None

    @scenario
    async def test_what_is_created_for_a_cluster_has_an_owner(
        self, env: BootstrapEnvironment
    ) -> None:
        """Secrets and ConfigMaps that the manager creates, such as a join token, have an owner.

        Make the Cluster the owner of what its machines share.  Otherwise ``clusterctl move`` leaves
        it behind, and no one deletes it: a bootstrap provider is not called for deletions.

        Proves: SM-07, MV-02.
        """
        cluster = env.add_cluster()
        first = env.add_machine(cluster, "cp1", control_plane=True)
        await env.has_data(first)
        env.control_plane_is_initialized(cluster)
        worker = env.add_machine(cluster, "m1")
        await env.has_data(worker)
        await env.quiet()
        written = {(kind, key) for verb, kind, key in env.api.requests if verb in CREATIONS}
        for kind, key in sorted(written):
            obj = env.api.find(kind, key) if kind in ("ConfigMap", "Secret") else None
            if obj is not None and key.namespace == cluster.namespace:
                assert _has_owner(obj), f"{kind} {key} has no owner"

    @scenario
    async def test_a_control_plane_without_status_is_not_initialized_again(
        self, env: BootstrapEnvironment
    ) -> None:
        """A Cluster that lost its status is not initialized a second time.

        Until core has detected its control plane again, no other member may take the lock.

        Proves: BC-12, MV-08, ST-11.
        """
        cluster = env.add_cluster()
        first = env.add_machine(cluster, "cp1", control_plane=True)
        await env.has_data(first)
        env.adopt("Machine", first)
        env.control_plane_is_initialized(cluster)
        await env.eventually("the lock is gone", lambda: env.lock(cluster) is None)
        env.api.change("Cluster", cluster, {"status": None})
        env.infrastructure_is_ready(cluster)

        second = env.add_machine(cluster, "cp2", control_plane=True)
        await env.says(second, "WaitingForControlPlaneInitialized")
        assert env.secret(second) is None
        assert env.lock(cluster) is None
        env.control_plane_is_initialized(cluster)
        await env.has_data(second)

    @pytest.mark.parametrize("lost", ["Secret", "status"])
    @scenario
    async def test_a_crash_between_two_writes_creates_one_set_of_data(
        self, env: BootstrapEnvironment, lost: str
    ) -> None:
        """A crash before the Secret or the status is written leaves one set of data.

        The next manager keeps an existing Secret.

        Proves: BC-05, BC-12, SM-09.
        """
        cluster = env.add_cluster()
        reached = False

        def crash(verb: str, kind: str, body: JSON) -> None:
            nonlocal reached
            of_config = kind == env.kind.resource.kind and verb == "patch_status"
            if (lost == "Secret" and kind == "Secret") or (lost == "status" and of_config):
                reached = True
                raise create_api_error(500, "InternalError", "the answer never came")

        env.api.fault = crash
        key = env.add_machine(cluster, "cp1", control_plane=True)
        await env.eventually("the crash", lambda: reached)
        await env.kill()
        made = env.secret(key)
        assert (made is None) is (lost == "Secret")

        env.api.fault = None
        env.start()
        await env.has_data(key)
        assert made is None or env.secret(key) == made

    @scenario
    async def test_deletion_needs_neither_machine_nor_cluster(
        self, env: BootstrapEnvironment
    ) -> None:
        """A configuration can be deleted even when its Machine and Cluster are already gone.

        Owner references suffice: the Secret is deleted with its owner.

        Proves: BC-19.
        """
        cluster, key = await env.running_worker()
        env.api.remove("Machine", key)
        env.api.remove("Cluster", cluster)
        await env.quiet()
        assert "finalizers" not in env.config(key)["metadata"]
        env.api.remove(env.kind.resource.kind, key)
        await env.quiet()
        assert env.api.find(env.kind.resource.kind, key) is None

    @scenario
    async def test_another_reconcile_changes_nothing(self, env: BootstrapEnvironment) -> None:
        _, key = await env.running_worker()
        env.adopt("Machine", key)
        await env.quiet()
        before = env.config(key), env.secret(key)
        for _ in range(3):
            await env.restart()
            await env.quiet()
        assert (env.config(key), env.secret(key)) == before


class TestBootstrapSecrets(BootstrapConformance):
    """Secrets with a configuration's name that belong to it or to another object."""

    @scenario
    async def test_restored_objects_own_their_secret_again(self, env: BootstrapEnvironment) -> None:
        """After a restore from a backup, a configuration owns its Secret again.

        The owner references in the backup have UIDs that no longer exist.

        Proves: BC-06, SM-06.
        """
        _, key = await env.running_worker()
        env.adopt("Machine", key)
        before = env.data(key)
        await env.stop()
        _replace(env, key)
        env.start()
        await env.has_data(key)
        secret = env.secret(key)
        assert secret is not None
        (owner,) = secret["metadata"]["ownerReferences"]
        assert owner["uid"] == env.config(key)["metadata"]["uid"]
        assert env.data(key) == before


def _replace(env: BootstrapEnvironment, key: NamespacedName) -> None:
    """Replace a configuration and its Machine by copies with new UIDs and without status."""
    machine, config = env.api.find("Machine", key), env.config(key)
    assert machine is not None
    for obj in (config, machine):
        env.api.remove(obj["kind"], key)
        for name in ("uid", "resourceVersion", "generation"):
            del obj["metadata"][name]
        obj.pop("status", None)
    config["metadata"]["ownerReferences"] = [reference_to(env.api.add(machine))]
    env.api.add(config)
