"""Lifecycle of a managed control plane."""

from __future__ import annotations

import pytest

from capsmith_runtime.errors import create_api_error
from capsmith_runtime.kube.client import JSON
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.controlplane.base import ManagedControlPlaneConformance
from capsmith_runtime.testing.controlplane.managed_environment import (
    CLUSTER,
    CLUSTER_NAME,
    CONTROL_PLANE,
    DELETE_FOR_MOVE,
    KUBECONFIG,
    LATER,
    VERSION,
    ManagedControlPlaneEnvironment,
)
from capsmith_runtime.testing.fake_api import WriteLimit
from capsmith_runtime.testing.provider import HostingDouble

ELSEWHERE = "elsewhere"
ANOTHER = """
clusters: [{name: c, cluster: {server: "https://another.test:6443"}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
users: [{name: u, user: {token: another}}]
current-context: c
"""
_ENDPOINT = "controlPlaneEndpoint"
_EXTERNAL = "externalManagedControlPlane"


class TestManagedControlPlane(ManagedControlPlaneConformance):
    """Lifecycle of a managed control plane."""

    @scenario
    async def test_a_control_plane_is_created(self, env: ManagedControlPlaneEnvironment) -> None:
        """A new control plane has its endpoint, finalizer, status and conditions.

        The service runs exactly one control plane, of the requested version.

        Proves: CP-01, CP-02, CP-03, CP-09, CP-10, CP-22, CP-25, CP-26, CP-27, SEC-01.
        """
        await env.running()
        obj, status = env.obj(), env.status()
        if env.has_field(obj, "spec", _ENDPOINT):
            assert set(obj["spec"][_ENDPOINT]) == {"host", "port"}
        assert obj["metadata"]["finalizers"] == [env.kind.finalizer]
        if env.has_field(obj, "status", _EXTERNAL):
            assert status[_EXTERNAL] is True
        if env.has_field(obj, "status", "version"):
            assert status.get("version", "") == env.version
        assert env.says("Available", "True")
        if env.contract == "v1beta1":
            assert status["ready"] is True
            assert env.says("Ready", "True")
        else:
            if env.version and env.has_field(obj, "status", "versions"):
                assert status["versions"] == [{"version": VERSION}]
            assert env.says("RollingOut", "False")
            assert env.says("Deleting", "False")
        assert list(env.hosting.control_planes().values()) == [env.version]

    @scenario
    async def test_the_kubeconfig_is_where_core_looks_for_it(
        self, env: ManagedControlPlaneEnvironment
    ) -> None:
        """The kubeconfig Secret has the name, type and label that core expects.

        The control plane is its controller.

        Proves: CP-22, SEC-01, SM-07.
        """
        await env.running()
        secret = env.api.find("Secret", KUBECONFIG)
        assert secret is not None
        assert secret["type"] == "cluster.x-k8s.io/secret"
        assert secret["metadata"]["labels"] == {CLUSTER_NAME: CLUSTER.name}
        (owner,) = secret["metadata"]["ownerReferences"]
        assert owner["uid"] == env.obj()["metadata"]["uid"]
        assert owner["controller"] is True
        assert env.kubeconfig().server.startswith("https://")

    @scenario
    async def test_the_kubeconfig_exists_before_the_status_reports_it(
        self, env: ManagedControlPlaneEnvironment
    ) -> None:
        """A control plane is not initialized before its kubeconfig Secret exists.

        Proves: CP-02, CP-22.
        """

        def refuse(verb: str, kind: str, body: JSON) -> None:
            if kind == "Secret":
                raise create_api_error(503, "ServiceUnavailable", "not now")

        env.api.fault = refuse
        env.add_cluster()
        env.add_control_plane()
        await env.eventually("it was tried", lambda: ("create", "Secret") in _writes(env))
        assert not env.initialized()
        env.api.fault = None
        await env.eventually("it is initialised", env.initialized)

    @scenario
    async def test_the_endpoint_of_the_user_is_kept(
        self, env: ManagedControlPlaneEnvironment
    ) -> None:
        """An endpoint that the user has set in the spec is never overwritten.

        Proves: CP-01.
        """
        resource = env.kind.resource
        kind: JSON = {"apiVersion": resource.api_version, "kind": resource.kind}
        if not env.has_field(kind, "spec", _ENDPOINT):
            pytest.skip("the CRD has no endpoint: the cluster of the infrastructure has it")
        given = {"host": "api.example.com", "port": 443}
        await env.running(controlPlaneEndpoint=given)
        assert env.obj()["spec"]["controlPlaneEndpoint"] == given

    @scenario
    async def test_nothing_is_written_again(self, env: ManagedControlPlaneEnvironment) -> None:
        await env.running()
        before = len(env.api.requests)
        await env.look_again()
        await env.restart()
        await env.quiet()
        writes = [verb for verb, _, _ in env.api.requests[before:] if verb != "get"]
        assert writes == []

    @pytest.mark.parametrize("crash_after", range(5))
    @scenario
    async def test_a_crash_between_any_two_requests_creates_nothing_twice(
        self, env: ManagedControlPlaneEnvironment, crash_after: int
    ) -> None:
        """Even if a manager crashes after any write, only one control plane is created.

        Proves: SM-08, SM-09.
        """
        crash = WriteLimit(crash_after)
        env.api.fault = crash
        env.add_cluster()
        env.add_control_plane()
        await env.eventually("crash or end", lambda: crash.is_exceeded or env.initialized())
        await env.kill()
        env.api.fault = None
        env.start()
        await env.eventually("it is initialised", env.initialized)
        assert len(env.hosting.control_planes()) == 1

    @scenario
    async def test_an_upgrade(self, env: ManagedControlPlaneEnvironment) -> None:
        """A new version is passed to the service, and reported once it runs.

        The user may leave out the ``v``.

        Proves: CP-08, CP-09, CP-10.
        """
        if not env.has_version:
            pytest.skip("the CRD has no version: the service decides which one it runs")
        await env.running()
        too_early: list[JSON] = []

        def look(verb: str, kind: str, body: JSON) -> None:
            reported = (body.get("status") or {}).get("version")
            if reported == LATER and LATER not in env.hosting.control_planes().values():
                too_early.append(body)

        env.api.fault = look
        # Users may leave out the "v".
        env.api.change(
            env.kind.resource.kind, CONTROL_PLANE, {"spec": {"version": LATER.removeprefix("v")}}
        )
        if env.has_field(env.obj(), "status", "version"):
            await env.eventually("it runs", lambda: env.status()["version"] == LATER)
        await env.quiet()
        assert not too_early, f"the service does not run {LATER} yet, but the status reports it"
        assert list(env.hosting.control_planes().values()) == [LATER]
        assert env.says("Available", "True")

    @scenario
    async def test_changed_credentials_reach_the_secret(
        self, env: ManagedControlPlaneEnvironment, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The control plane's new credentials are written to the kubeconfig Secret.

        Proves: SEC-01.
        """
        await env.running()
        env.hosting.change_credentials(monkeypatch, ANOTHER)
        await env.look_again()
        assert env.kubeconfig().token == "another"

    @scenario
    async def test_a_deleted_kubeconfig_is_created_again(
        self, env: ManagedControlPlaneEnvironment
    ) -> None:
        """A kubeconfig Secret that a user deletes is created again with the same content.

        Proves: SEC-01.
        """
        await env.running()
        before = env.kubeconfig()
        env.api.remove("Secret", KUBECONFIG)
        await env.eventually("it is back", lambda: env.api.find("Secret", KUBECONFIG))
        assert env.kubeconfig() == before

    @scenario
    async def test_control_planes_of_one_name_are_kept_apart(
        self, env: ManagedControlPlaneEnvironment
    ) -> None:
        """Control planes of one name in two namespaces are two; each is deleted on its own.

        Names are unique in a namespace only: use ``external_id`` or ``short_id``.

        Proves: CP-34, SM-09.
        """
        await env.running()
        env.add_namespace(ELSEWHERE)
        env.add_cluster(namespace=ELSEWHERE)
        env.add_control_plane(namespace=ELSEWHERE)
        await env.eventually("the other is initialised", lambda: env.initialized(ELSEWHERE))
        await env.quiet()
        assert len(env.hosting.control_planes()) == 2

        kind = env.kind.resource.kind
        env.api.remove(kind, CONTROL_PLANE)
        await env.eventually("it is gone", lambda: env.api.find(kind, CONTROL_PLANE) is None)
        assert len(env.hosting.control_planes()) == 1
        await env.restart()
        await env.quiet()
        assert len(env.hosting.control_planes()) == 1

    @scenario
    async def test_a_pause_stops_everything(self, env: ManagedControlPlaneEnvironment) -> None:
        """While the Cluster is paused, the control plane is neither upgraded nor deleted.

        Proves: SM-01, ST-08.
        """
        await env.running()
        kind = env.kind.resource.kind
        env.api.change("Cluster", CLUSTER, {"spec": {"paused": True}})
        await env.eventually("it says so", lambda: env.says("Paused", "True"))
        await env.quiet()
        if env.has_version:
            env.api.change(kind, CONTROL_PLANE, {"spec": {"version": LATER}})
        env.api.remove(kind, CONTROL_PLANE)
        await env.quiet()
        assert list(env.hosting.control_planes().values()) == [env.version]
        assert env.obj()["metadata"]["finalizers"]

        env.api.change("Cluster", CLUSTER, {"spec": {"paused": False}})
        await env.eventually("it is gone", lambda: not env.hosting.control_planes())

    @scenario
    async def test_deletion_leaves_nothing(self, env: ManagedControlPlaneEnvironment) -> None:
        """Deletion first removes the control plane from the service, and then its object.

        Proves: CP-34, SM-08.
        """
        await env.running()
        env.api.remove(env.kind.resource.kind, CONTROL_PLANE)
        await env.eventually(
            "it is gone", lambda: env.api.find(env.kind.resource.kind, CONTROL_PLANE) is None
        )
        assert not env.hosting.control_planes()

    @pytest.mark.parametrize("is_killed", [False, True])
    @scenario
    async def test_a_deletion_during_the_creation_leaves_nothing(
        self, env: ManagedControlPlaneEnvironment, *, is_killed: bool
    ) -> None:
        """What the service is creating is deleted, even if no object records it.

        Proves: CP-34, SM-08, SM-09.
        """
        kind, has_begun = env.kind.resource.kind, env.hosting.control_planes

        def refuse(verb: str, kind: str, body: JSON) -> None:
            if has_begun():
                raise create_api_error(503, "ServiceUnavailable", "not now")

        env.api.fault = refuse if is_killed else None
        env.add_cluster()
        env.add_control_plane()
        await env.eventually("its creation has begun", has_begun)
        if is_killed:
            await env.kill()
            env.api.fault = None
        env.api.remove(kind, CONTROL_PLANE)
        if is_killed:
            env.start()
        await env.eventually("it is gone", lambda: env.api.find(kind, CONTROL_PLANE) is None)
        assert not env.hosting.control_planes()

    @scenario
    async def test_a_deletion_for_a_move_leaves_everything(
        self, env: ManagedControlPlaneEnvironment
    ) -> None:
        """When ``clusterctl move`` deletes the source object, the control plane keeps running.

        Proves: MV-08.
        """
        await env.running()
        kind = env.kind.resource.kind
        env.api.change(kind, CONTROL_PLANE, {"metadata": {"annotations": {DELETE_FOR_MOVE: ""}}})
        env.api.remove(kind, CONTROL_PLANE)
        await env.quiet()
        assert len(env.hosting.control_planes()) == 1

    @scenario
    async def test_a_move_finds_everything_again(
        self, env: ManagedControlPlaneEnvironment, hosting: HostingDouble
    ) -> None:
        """After a move, the existing control plane and its kubeconfig are adopted.

        Proves: MV-08, SM-09, ST-11, SEC-05.
        """
        await env.running()
        here, kubeconfig = hosting.control_planes(), env.kubeconfig()
        moved, secret = env.obj(), env.api.find("Secret", KUBECONFIG)
        assert secret is not None

        async with ManagedControlPlaneEnvironment(
            env.provider, env.component, env.api.core_version, kind=env.kind, hosting=hosting
        ) as target:
            await env.kill()
            _move(moved, secret, target)
            await target.eventually("it is initialised", target.initialized)
            await target.quiet()
            assert hosting.control_planes() == here
            assert target.kubeconfig() == kubeconfig
            assert target.says("Available", "True")


def _move(obj: JSON, secret: JSON, target: ManagedControlPlaneEnvironment) -> None:
    """Create objects again as clusterctl does: without status and UID, owners first (MV-07)."""
    owner = target.add_cluster()
    obj.pop("status")
    obj["metadata"]["ownerReferences"][0]["uid"] = owner["metadata"]["uid"]
    made = target.api.add(obj)
    secret["metadata"]["ownerReferences"][0]["uid"] = made["metadata"]["uid"]
    target.api.add(secret)


def _writes(env: ManagedControlPlaneEnvironment) -> list[tuple[str, str]]:
    return [(verb, kind) for verb, kind, _ in env.api.requests]


class TestManagedControlPlaneFaults(ManagedControlPlaneConformance):
    """Managed control planes whose prerequisites are missing."""

    @scenario
    async def test_the_infrastructure_comes_first(
        self, env: ManagedControlPlaneEnvironment
    ) -> None:
        """No control plane is created before its Cluster's infrastructure is provisioned.

        Proves: SM-02, CP-25.
        """
        env.add_cluster(provisioned=False)
        env.add_control_plane()
        await env.eventually("it says so", lambda: env.says("Available", "False"))
        await env.quiet()
        if env.has_field(env.obj(), "status", _EXTERNAL):
            assert env.status()[_EXTERNAL] is True
        assert not env.hosting.control_planes()
        env.provision()
        await env.eventually("it is initialised", env.initialized)
