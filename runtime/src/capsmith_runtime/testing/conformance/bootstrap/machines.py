"""Bootstrap data for Machines and MachinePools: their order, and how they are published."""

from __future__ import annotations

import base64

from capsmith_runtime.testing.bootstrap.certificates import PURPOSES, has_key
from capsmith_runtime.testing.bootstrap.environment import (
    CLUSTER_NAME,
    GROUP,
    BootstrapEnvironment,
    reference_to,
)
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.bootstrap.base import BootstrapConformance

WAITING_FOR_CONTROL_PLANE = "WaitingForControlPlaneInitialized"
WORKER_REQUESTS = [("get", "Secret"), ("create", "Secret")]
"""Expected requests for a worker's data, as verb and kind.

Requests by the author's code for certificates and the write of the status are not included.
"""


class TestBootstrapData(BootstrapConformance):
    """Bootstrap data for Machines: their order, and how they are published."""

    @scenario
    async def test_a_worker_gets_its_data(self, env: BootstrapEnvironment) -> None:
        """A worker gets a Secret with data, and then a status that names the Secret.

        The Secret has the name, label, owner, type and keys that the contract requires.

        Proves: BC-01, BC-02, BC-03, BC-04, BC-05, BC-06, BC-09, SEC-04.
        """
        cluster = env.add_cluster()
        env.control_plane_is_initialized(cluster)
        key = env.add_machine(cluster, "m1")
        await env.has_data(key)
        config, secret = env.config(key), env.secret(key)
        assert secret is not None
        assert secret["type"] == "cluster.x-k8s.io/secret"
        assert secret["metadata"]["labels"] == {CLUSTER_NAME: cluster.name}
        (owner,) = secret["metadata"]["ownerReferences"]
        assert owner == {
            "apiVersion": config["apiVersion"],
            "kind": config["kind"],
            "name": key.name,
            "uid": config["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
        assert secret["data"].keys() == {"value", "format"}
        assert base64.b64decode(secret["data"]["format"])
        assert env.data(key)
        assert config["status"]["dataSecretName"] == secret["metadata"]["name"] == key.name
        assert env.shows(config, "Ready", "True", "Ready")

    @scenario
    async def test_a_worker_costs_few_requests(self, env: BootstrapEnvironment) -> None:
        cluster = env.add_cluster()
        env.control_plane_is_initialized(cluster)
        key = env.add_machine(cluster, "m1")
        await env.has_data(key)
        await env.quiet()
        env.adopt("Machine", key)
        await env.quiet()
        sent = [(verb, kind) for verb, kind, on in env.api.requests if on == key]
        assert sent == [*WORKER_REQUESTS, ("patch_status", env.kind.resource.kind)]

    @scenario
    async def test_machines_wait_for_the_infrastructure_and_the_control_plane(
        self, env: BootstrapEnvironment
    ) -> None:
        """All machines wait for the infrastructure, and workers also for the control plane.

        Each configuration reports what it is waiting for.

        Proves: BC-12.
        """
        cluster = env.add_cluster(ready=False)
        worker = env.add_machine(cluster, "m1")
        first = env.add_machine(cluster, "cp1", control_plane=True)
        await env.says(worker, "WaitingForClusterInfrastructureReady")
        await env.says(first, "WaitingForClusterInfrastructureReady")

        env.infrastructure_is_ready(cluster)
        await env.says(worker, WAITING_FOR_CONTROL_PLANE)
        await env.has_data(first)
        assert env.secret(worker) is None

        env.control_plane_is_initialized(cluster)
        await env.has_data(worker)

    @scenario
    async def test_one_machine_at_a_time_initialises(self, env: BootstrapEnvironment) -> None:
        """Only one control plane machine at a time may initialize the cluster.

        The lock exists only while a control plane is being initialized.

        Proves: BC-12.
        """
        cluster = env.add_cluster(ready=False)
        keys = [env.add_machine(cluster, f"cp{n}", control_plane=True) for n in range(3)]
        env.infrastructure_is_ready(cluster)
        await env.eventually("one begins", lambda: any(map(env.created, keys)))
        await env.quiet()
        (first,) = (key for key in keys if env.created(key))
        others = [key for key in keys if key != first]
        for key in others:
            await env.says(key, WAITING_FOR_CONTROL_PLANE)
            assert env.secret(key) is None
        lock = env.lock(cluster)
        assert lock is not None
        (owner,) = lock["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"]) == ("Cluster", cluster.name)
        assert first.name in lock["data"]["lock-information"]

        env.control_plane_is_initialized(cluster)
        for key in others:
            await env.has_data(key)
        await env.eventually("the lock is gone", lambda: env.lock(cluster) is None)

    @scenario
    async def test_the_lock_passes_on_when_its_holder_is_deleted(
        self, env: BootstrapEnvironment
    ) -> None:
        """When the machine that holds the init lock is deleted, another one gets the lock.

        Proves: BC-12, BC-19.
        """
        cluster = env.add_cluster()
        first = env.add_machine(cluster, "cp1", control_plane=True)
        await env.has_data(first)
        second = env.add_machine(cluster, "cp2", control_plane=True)
        await env.says(second, WAITING_FOR_CONTROL_PLANE)

        env.api.remove(env.kind.resource.kind, first)
        env.api.remove("Machine", first)
        await env.has_data(second)
        lock = env.lock(cluster)
        assert lock is not None
        assert second.name in lock["data"]["lock-information"]

    @scenario
    async def test_something_else_with_the_name_of_the_lock_stays(
        self, env: BootstrapEnvironment
    ) -> None:
        cluster = env.add_cluster()
        metadata = {"namespace": cluster.namespace, "name": f"{cluster.name}-lock"}
        theirs = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "b"}}
        env.api.add(theirs)
        key = env.add_machine(cluster, "cp1", control_plane=True)
        await env.says(key, WAITING_FOR_CONTROL_PLANE)
        env.control_plane_is_initialized(cluster)
        await env.has_data(key)
        await env.quiet()
        lock = env.lock(cluster)
        assert lock is not None
        assert lock["data"] == {"a": "b"}

    @scenario
    async def test_a_clone_without_owner_is_left_alone(self, env: BootstrapEnvironment) -> None:
        """A clone of a template is left unchanged until core has set its owner.

        Proves: BC-11.
        """
        cluster = env.add_cluster()
        env.control_plane_is_initialized(cluster)
        key = env.add_config(cluster, "m1", None)
        await env.quiet()
        assert env.asked() == []
        assert "status" not in env.config(key)

        # Core creates the Machine and sets the owner after the clone.
        machine = env.api.add(env.machine(cluster, "m1"))
        await env.quiet()
        assert env.asked() == []
        owned = {"metadata": {"ownerReferences": [reference_to(machine)]}}
        env.api.change(env.kind.resource.kind, key, owned)
        await env.has_data(key)

    @scenario
    async def test_an_owner_may_be_seen_after_its_dependents(
        self, env: BootstrapEnvironment
    ) -> None:
        """A configuration gets its data even if its owner appears in the caches after it.

        The caches for different kinds are not synchronized with each other.
        """
        cluster = env.add_cluster()
        env.control_plane_is_initialized(cluster)
        unseen = env.machine(cluster, "m1")
        unseen["metadata"]["uid"] = "uid-of-m1"
        key = env.add_config(cluster, "m1", unseen)
        await env.quiet()
        assert env.secret(key) is None

        env.api.add(unseen)
        await env.has_data(key)

    @scenario
    async def test_workers_never_see_the_keys_of_the_cluster(
        self, env: BootstrapEnvironment
    ) -> None:
        cluster = env.add_cluster()
        env.control_plane_is_initialized(cluster)
        keys = [env.add_machine(cluster, "m1"), env.add_pool(cluster)]
        for key in keys:
            await env.has_data(key)
            assert [each for each in PURPOSES if has_key(env.data(key), each)] == []

    @scenario
    async def test_only_objects_with_the_label_are_reconciled(
        self, env: BootstrapEnvironment
    ) -> None:
        await env.stop()
        cluster = env.add_cluster()
        env.control_plane_is_initialized(cluster)
        theirs = env.add_machine(cluster, "theirs")
        ours = env.add_machine(cluster, "ours")
        for key, value in ((theirs, "another"), (ours, "mine")):
            labels = {"metadata": {"labels": {f"{GROUP}/watch-filter": value}}}
            env.api.change(env.kind.resource.kind, key, labels)
        env.start(watch_filter="mine")
        await env.has_data(ours)
        await env.quiet()
        assert env.secret(theirs) is None
        assert not env.created(theirs)


IN_PLACE = "in-place-updates.internal.cluster.x-k8s.io/update-in-progress"


class TestBootstrapDataOfPools(BootstrapConformance):
    """Bootstrap data for MachinePools: one Secret, which stays valid for later machines."""

    @scenario
    async def test_a_pool_gets_its_data(self, env: BootstrapEnvironment) -> None:
        """A pool gets its data after the control plane is initialized, and never takes the lock.

        Proves: BC-11, BC-12.
        """
        cluster = env.add_cluster()
        key = env.add_pool(cluster)
        await env.says(key, "WaitingForControlPlaneInitialized")
        assert env.lock(cluster) is None, "a pool initialises nothing"

        env.control_plane_is_initialized(cluster)
        await env.has_data(key)
        assert env.shows(env.config(key), "Ready", "True", "Ready")

    @scenario
    async def test_data_follow_the_version_of_the_pool(self, env: BootstrapEnvironment) -> None:
        """If the pool gets a new Kubernetes version, new data replace those in the same Secret.

        Core has copied the Secret's name, so the name must not change.

        Proves: MP-19.
        """
        cluster = env.add_cluster()
        env.control_plane_is_initialized(cluster)
        key = env.add_pool(cluster)
        await env.has_data(key)
        env.adopt("MachinePool", key)
        await env.quiet()
        before = env.secret(key)
        assert before is not None

        version = {"spec": {"template": {"spec": {"version": "v1.35.0"}}}}
        env.api.change("MachinePool", key, version)
        await env.eventually("created again", lambda: env.secret(key) != before)
        await env.quiet()
        secret = env.secret(key)
        assert secret is not None
        assert secret["metadata"]["uid"] == before["metadata"]["uid"]
        assert env.config(key)["status"]["dataSecretName"] == key.name

    @scenario
    async def test_data_stay_while_machines_are_changed_in_place(
        self, env: BootstrapEnvironment
    ) -> None:
        """Data do not change during an in-place update, and are created again after it.

        Proves: BC-15.
        """
        cluster = env.add_cluster()
        env.control_plane_is_initialized(cluster)
        key = env.add_pool(cluster)
        await env.has_data(key)
        await env.quiet()
        before = env.secret(key)

        marks = {"metadata": {"annotations": {IN_PLACE: ""}}}
        env.api.change(env.kind.resource.kind, key, marks)
        version = {"spec": {"template": {"spec": {"version": "v1.35.0"}}}}
        env.api.change("MachinePool", key, version)
        await env.quiet()
        assert env.secret(key) == before

        done = {"metadata": {"annotations": {IN_PLACE: None}}}
        env.api.change(env.kind.resource.kind, key, done)
        await env.eventually("created again", lambda: env.secret(key) != before)
